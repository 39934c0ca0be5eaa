//! No reservation exceeds what is left of the limit, and what was used is booked.

use super::backend::Opened;
use super::jobs::{LAPSED, LEASE, NOW, agent, book, done, engagement, nothing, reserve};
use super::on_every_store;
use turnstone_domain::{Phase, Settlement, TurnWrite};
use turnstone_store::{Duty, JobKind, LedgerError, Page};

on_every_store![
    a_reservation_fits_or_is_refused_and_is_given_back_at_the_end,
    a_refused_reservation_writes_nothing,
    a_crash_gives_the_reservation_back,
    what_was_used_is_booked_beyond_the_limit,
    no_limit_is_never_exceeded_and_zero_is_a_limit,
    jobs_that_share_a_budget_never_exceed_it,
    a_released_job_gives_its_reservation_back,
];

async fn a_reservation_fits_or_is_refused_and_is_given_back_at_the_end(at: &Opened) {
    let held = at.held(Some(100)).await;
    let ledger = &at.store.ledger;
    let with = |tokens| TurnWrite { budget: reserve(tokens).budget, ..done(Phase::Init) };
    let refused = ledger.checkpoint(&held.lease, with(101), NOW, LEASE).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 100, needed: 101, .. }));
    let budget = ledger.checkpoint(&held.lease, with(100), NOW, LEASE).await.unwrap().budget;
    assert_eq!((budget.reserved, budget.left()), (100, Some(0)));
    let budget = ledger.checkpoint(&held.lease, book(100, 30), NOW, LEASE).await.unwrap().budget;
    assert_eq!((budget.settled, budget.reserved), (30, 0));
    ledger.checkpoint(&held.lease, reserve(70), NOW, LEASE).await.unwrap();
    at.settle(&held.lease, Settlement::Yield).await;
    let budget = at.store.views.budget(&engagement(&held)).await.unwrap();
    assert_eq!((budget.settled, budget.reserved), (30, 0), "nothing stays reserved without a lease");
    assert_eq!(at.job(&held.job).await.agent.unwrap().tokens_used, 30);
}

async fn a_refused_reservation_writes_nothing(at: &Opened) {
    let held = at.held(Some(100)).await;
    let events = at.events(&held.job).await;
    let write = TurnWrite { budget: reserve(101).budget, ..done(Phase::Init) };
    at.store.ledger.checkpoint(&held.lease, write.clone(), NOW, 5 * LEASE).await.unwrap_err();
    at.store.ledger.settle(&held.lease, write, Settlement::Yield, NOW).await.unwrap_err();
    assert_eq!(at.events(&held.job).await, events);
    let page = Page { limit: 10, offset: 0 };
    assert!(at.store.views.checkpoints(&engagement(&held), page).await.unwrap().is_empty());
    assert_eq!(at.store.views.budget(&engagement(&held)).await.unwrap().reserved, 0);
    assert!(at.store.ledger.reads().lost(std::slice::from_ref(&held.lease)).await.unwrap().is_empty());
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(held.lease.expires_at), "it is not extended");
}

async fn a_crash_gives_the_reservation_back(at: &Opened) {
    let held = at.held(Some(100)).await;
    at.store.ledger.checkpoint(&held.lease, reserve(60), NOW, LEASE).await.unwrap();
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 1);
    let next = at.claim(JobKind::Agent, 1).await.remove(0).engagement.unwrap();
    assert_eq!(next.budget.left(), Some(100));
}

async fn what_was_used_is_booked_beyond_the_limit(at: &Opened) {
    let held = at.held(Some(100)).await;
    let ledger = &at.store.ledger;
    ledger.checkpoint(&held.lease, reserve(10), NOW, LEASE).await.unwrap();
    for (reserved, used) in [(11, 0), (10, -1)] {
        let refused = ledger.checkpoint(&held.lease, book(reserved, used), NOW, LEASE).await.unwrap_err();
        assert!(matches!(refused, LedgerError::Store(_)), "{reserved} {used}: {refused}");
    }
    let budget = ledger.checkpoint(&held.lease, nothing(), NOW, LEASE).await.unwrap().budget;
    assert_eq!((budget.settled, budget.reserved), (0, 10));
    // A call may use more than was reserved for it. Nothing is left then.
    let budget = ledger.checkpoint(&held.lease, book(10, 101), NOW, LEASE).await.unwrap().budget;
    assert_eq!((budget.settled, budget.reserved, budget.left()), (101, 0, Some(0)));
}

async fn no_limit_is_never_exceeded_and_zero_is_a_limit(at: &Opened) {
    let held = at.held(None).await;
    let budget = at.store.ledger.checkpoint(&held.lease, reserve(1 << 40), NOW, LEASE).await.unwrap().budget;
    assert_eq!((budget.reserved, budget.left()), (1 << 40, None));
    let held = at.held(Some(0)).await;
    let refused = at.store.ledger.checkpoint(&held.lease, reserve(1), NOW, LEASE).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 0, needed: 1, .. }));
}

async fn jobs_that_share_a_budget_never_exceed_it(at: &Opened) {
    at.store.intake.push((0..40).map(|_| agent(Some(100))).collect()).await.unwrap();
    // No endpoint lets engagements share this budget; the tables and the ledger support it.
    at.query("UPDATE engagements SET budget_seq = (SELECT min(seq) FROM totals)").await;
    let claims = at.claim(JobKind::Agent, 40).await;
    let ledger = &at.store.ledger;
    let reservations = claims.iter().map(|claim| ledger.checkpoint(&claim.lease, reserve(7), NOW, LEASE));
    let outcomes = futures::future::join_all(reservations).await;
    let won: Vec<usize> = (0..40).filter(|at| outcomes[*at].is_ok()).collect();
    assert_eq!(won.len(), 14, "as many as fit into 100");
    let refused = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    for error in refused {
        assert!(matches!(error, LedgerError::BudgetExceeded { left, needed: 7, .. } if *left < 7), "{error}");
    }
    let bookings = won.iter().map(|at| ledger.checkpoint(&claims[*at].lease, book(7, 3), NOW, LEASE));
    assert!(futures::future::join_all(bookings).await.iter().all(Result::is_ok));
    let budget = at.store.views.budget(&engagement(&claims[39])).await.unwrap();
    assert_eq!((budget.limit, budget.settled, budget.reserved), (Some(100), 42, 0));
    let again = claims.iter().map(|claim| ledger.checkpoint(&claim.lease, reserve(29), NOW, LEASE));
    assert_eq!(futures::future::join_all(again).await.iter().filter(|outcome| outcome.is_ok()).count(), 2);
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 40);
    let budget = at.store.views.budget(&engagement(&claims[0])).await.unwrap();
    assert_eq!((budget.settled, budget.reserved), (42, 0));
}

async fn a_released_job_gives_its_reservation_back(at: &Opened) {
    let held = at.held(Some(100)).await;
    at.store.ledger.checkpoint(&held.lease, reserve(60), NOW, LEASE).await.unwrap();
    at.store.ledger.release(std::slice::from_ref(&held.lease), NOW).await.unwrap();
    let budget = at.store.views.budget(&engagement(&held)).await.unwrap();
    assert_eq!((budget.settled, budget.reserved), (0, 0));
}
