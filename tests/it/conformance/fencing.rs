//! A lost lease writes nothing, and a refused write fails for its own caller only.

use super::backend::Opened;
use super::jobs::{
    LAPSED, LEASE, NOW, agent, book, complete, discard, done, engagement, nothing, park, reserve, retry,
};
use super::on_every_store;
use turnstone_domain::{JobId, JobState, Lease, Phase, Settlement};
use turnstone_store::{Claim, Duty, EventFilter, JobKind, LedgerError};

on_every_store![
    a_stale_lease_writes_nothing,
    an_invented_token_writes_nothing,
    a_fenced_row_of_a_shared_commit_fails_only_its_own_caller,
    one_poisonous_write_fails_alone,
    a_phase_is_committed_once,
    two_ends_of_one_lease_do_not_both_count,
    a_lease_that_was_settled_is_lost,
];

async fn everything(at: &Opened, claim: &Claim) -> (turnstone_domain::Job, usize, i64, usize) {
    let events = at.store.views.events_after(&EventFilter::Job(claim.job.clone()), 0, 1000).await.unwrap();
    let budget = at.store.views.budget(&engagement(claim)).await.unwrap();
    let page = turnstone_store::Page { limit: 100, offset: 0 };
    let checkpoints = at.store.views.checkpoints(&engagement(claim), page).await.unwrap();
    (at.job(&claim.job).await, events.len(), budget.reserved, checkpoints.len())
}

/// Tries every write with a lost lease and asserts that nothing changes.
async fn nothing_is_written_under(at: &Opened, claim: &Claim, lost: &Lease) {
    let before = everything(at, claim).await;
    for write in [done(Phase::Init), nothing(), reserve(5), book(0, 0)] {
        let refused = at.store.ledger.checkpoint(lost, write, NOW, LEASE).await.unwrap_err();
        assert!(matches!(&refused, LedgerError::LeaseLost(id) if *id == lost.job), "{refused}");
    }
    let ends = [complete(), discard(), retry(NOW), park(None), Settlement::Yield];
    for end in ends {
        let refused = at.store.ledger.settle(lost, done(Phase::Init), end, NOW).await.unwrap_err();
        assert!(matches!(&refused, LedgerError::LeaseLost(id) if *id == lost.job), "{refused}");
    }
    let tokens = vec![lost.token.clone()];
    assert_eq!(at.store.ledger.extend(std::slice::from_ref(lost), NOW, 2 * LEASE).await.unwrap(), tokens);
    assert_eq!(at.store.ledger.reads().lost(std::slice::from_ref(lost)).await.unwrap(), tokens);
    at.store.ledger.release(std::slice::from_ref(lost), NOW).await.unwrap();
    assert_eq!(everything(at, claim).await, before);
}

async fn a_stale_lease_writes_nothing(at: &Opened) {
    let stale = at.held(Some(100)).await;
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED.plus_ms(-1)).await, 0, "not yet");
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 1);
    nothing_is_written_under(at, &stale, &stale.lease).await;
    let fresh = at.claim(JobKind::Agent, 1).await.remove(0);
    assert_ne!(stale.lease.token, fresh.lease.token);
    nothing_is_written_under(at, &stale, &stale.lease).await;
    let lost = at.store.ledger.reads().lost(&[stale.lease.clone(), fresh.lease.clone()]).await.unwrap();
    assert_eq!(lost.as_slice(), std::slice::from_ref(&stale.lease.token));
    let lost = at.store.ledger.extend(&[fresh.lease.clone(), stale.lease.clone()], NOW, LEASE).await.unwrap();
    assert_eq!(lost.as_slice(), std::slice::from_ref(&stale.lease.token));
    at.store.ledger.checkpoint(&fresh.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
}

async fn an_invented_token_writes_nothing(at: &Opened) {
    let held = at.held(Some(100)).await;
    for token in ["", "x", held.job.as_str()] {
        nothing_is_written_under(at, &held, &Lease { token: token.into(), ..held.lease.clone() }).await;
    }
    // The valid token of another job is refused.
    let other = at.held(None).await;
    nothing_is_written_under(at, &held, &Lease { token: other.lease.token, ..held.lease.clone() }).await;
    let nobody = Lease { job: JobId("nobody".into()), ..held.lease.clone() };
    nothing_is_written_under(at, &held, &nobody).await;
    at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
}

async fn a_fenced_row_of_a_shared_commit_fails_only_its_own_caller(at: &Opened) {
    at.store.intake.push((0..60).map(|_| agent(Some(10))).collect()).await.unwrap();
    let mut claims = at.claim(JobKind::Agent, 60).await;
    let (stale, cancelled) = (13, 41);
    claims[stale].lease.token = "of another time".into();
    at.store.intake.cancel(&claims[cancelled].job, NOW).await.unwrap();
    for phase in Phase::ALL {
        let writes =
            claims.iter().map(|claim| at.store.ledger.checkpoint(&claim.lease, done(phase), NOW, LEASE));
        let outcomes = futures::future::join_all(writes).await;
        let failed: Vec<usize> = (0..60).filter(|at| outcomes[*at].is_err()).collect();
        assert_eq!(failed, [stale, cancelled]);
        assert!(outcomes.iter().flatten().all(|committed| committed.budget.limit == Some(10)));
    }
    let ends = claims.iter().map(|claim| at.store.ledger.settle(&claim.lease, nothing(), complete(), NOW));
    let outcomes = futures::future::join_all(ends).await;
    assert_eq!((0..60).filter(|at| outcomes[*at].is_err()).collect::<Vec<_>>(), [stale, cancelled]);
    assert_eq!(at.query(turnstone_tests::journal::CHECKPOINTS).await, 58 * 7);
    assert_eq!(at.state(&claims[stale].job).await, JobState::Active);
    assert_eq!(at.state(&claims[cancelled].job).await, JobState::Cancelled);
    assert_eq!(at.query("SELECT count(*) FROM jobs WHERE state = 'completed'").await, 58);
}

async fn one_poisonous_write_fails_alone(at: &Opened) {
    at.store.intake.push((0..20).map(|_| agent(None)).collect()).await.unwrap();
    let claims = at.claim(JobKind::Agent, 20).await;
    let poisoned = &claims[7];
    at.store.ledger.checkpoint(&poisoned.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
    let writes =
        claims.iter().map(|claim| at.store.ledger.checkpoint(&claim.lease, done(Phase::Init), NOW, LEASE));
    let outcomes = futures::future::join_all(writes).await;
    let failed: Vec<usize> = (0..20).filter(|at| outcomes[*at].is_err()).collect();
    assert_eq!(failed, [7], "the others of the same commit are not touched");
}

async fn a_phase_is_committed_once(at: &Opened) {
    let held = at.held(Some(100)).await;
    at.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
    let before = everything(at, &held).await;
    let mut again = done(Phase::Init);
    again.budget = reserve(7).budget;
    let twice = at.store.ledger.checkpoint(&held.lease, again, NOW, LEASE).await.unwrap_err();
    assert!(matches!(twice, LedgerError::Store(_)), "{twice}");
    let twice = at.store.ledger.settle(&held.lease, done(Phase::Init), complete(), NOW).await.unwrap_err();
    assert!(matches!(twice, LedgerError::Store(_)), "{twice}");
    assert_eq!(everything(at, &held).await, before, "a refused write leaves nothing");
    at.store.ledger.checkpoint(&held.lease, done(Phase::Norm), NOW, LEASE).await.unwrap();
    at.store.upkeep.release_all(NOW).await.unwrap();
    let next = at.claim(JobKind::Agent, 1).await.remove(0).engagement.unwrap();
    let phases: Vec<Phase> = next.checkpoints.iter().map(|checkpoint| checkpoint.phase).collect();
    assert_eq!(phases, [Phase::Init, Phase::Norm]);
}

async fn two_ends_of_one_lease_do_not_both_count(at: &Opened) {
    for _ in 0..10 {
        let held = at.held(None).await;
        let ends = [complete(), discard(), complete()];
        let ends = ends.into_iter().map(|end| at.store.ledger.settle(&held.lease, nothing(), end, NOW));
        let outcomes = futures::future::join_all(ends).await;
        let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 2);
        assert!(refused.iter().all(|error| matches!(error, LedgerError::LeaseLost(_))), "{refused:?}");
        let job = at.job(&held.job).await;
        assert_eq!(job.result.is_some(), job.state == JobState::Completed);
        assert_eq!(job.errors.len(), usize::from(job.state == JobState::Discarded));
    }
}

async fn a_lease_that_was_settled_is_lost(at: &Opened) {
    for end in [complete(), discard(), retry(NOW.plus_ms(1)), park(None)] {
        let held = at.held(Some(100)).await;
        at.settle(&held.lease, end).await;
        nothing_is_written_under(at, &held, &held.lease).await;
    }
}
