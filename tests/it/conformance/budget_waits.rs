//! Jobs wait for budgets that others set, raise and delete meanwhile: none waits for something that is gone.

use super::backend::{Backend, Opened, open};
use super::budgets::{reserve, rule};
use super::jobs::{NOW, agent, complete, engagement, nothing};
use super::on_every_store;
use proptest::prelude::*;
use turnstone_domain::budget::{BudgetWait, Measure};
use turnstone_domain::{JobState, Settlement, Wait};
use turnstone_store::{Claim, Duty, JobKind, LedgerError, OwnBudget, Raise, Store};

on_every_store![a_lost_wait_is_found];

const BUDGETS: [&str; 3] = ["fleet", "tenant/acme", "agent/desk"];
/// The tokens of every call; no budget has as many.
const NEEDED: i64 = 100;

/// One step of an operator or of a worker.
#[derive(Clone, Debug)]
enum Step {
    /// The next claimed job asks for tokens of these budgets, and parks when one refuses it.
    Call {
        charged: Vec<&'static str>,
    },
    Set {
        name: &'static str,
    },
    Raise {
        name: &'static str,
        tokens: u64,
    },
    Delete {
        name: &'static str,
    },
    /// The budget of an engagement.
    RaiseOwn {
        job: usize,
        tokens: Option<i64>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(BUDGETS.to_vec());
    prop_oneof![
        4 => prop::sample::subsequence(BUDGETS.to_vec(), 0..=3).prop_map(|charged| Step::Call { charged }),
        1 => name().prop_map(|name| Step::Set { name }),
        1 => (name(), 1_u64..80).prop_map(|(name, tokens)| Step::Raise { name, tokens }),
        2 => name().prop_map(|name| Step::Delete { name }),
        1 => (0_usize..JOBS, prop::option::of(0_i64..200)).prop_map(|(job, tokens)| Step::RaiseOwn { job, tokens }),
    ]
}

const JOBS: usize = 12;

/// Reserves, and parks for the budget that refuses. Returns true if the job called. One that was cancelled does neither.
pub(super) async fn call(store: &Store, claim: &Claim, charged: &[&str]) -> bool {
    let refused = store.ledger.checkpoint(&claim.lease, reserve(NEEDED, None, charged), NOW, 60_000).await;
    let of = match refused {
        Ok(_) => return true,
        Err(LedgerError::BudgetExceeded { of, .. }) => of,
        Err(LedgerError::LeaseLost(_)) => return false,
        Err(error) => panic!("{error}"),
    };
    let wait = BudgetWait {
        name: of.name.clone(),
        resets_at: of.resets_at,
        measure: Measure::Tokens,
        needed: Some(NEEDED),
        least: None,
        until: None,
    };
    let end = Settlement::Park { wait: Wait::Raise(wait) };
    let settled = store.ledger.settle(&claim.lease, nothing(), end, NOW).await;
    assert!(matches!(settled, Ok(_) | Err(LedgerError::LeaseLost(_))), "{settled:?}");
    false
}

async fn perform(at: &Opened, store: &Store, step: &Step, claim: Option<&Claim>, claims: &[Claim]) {
    match step {
        Step::Call { charged } => {
            if let Some(claim) = claim {
                call(&at.store, claim, charged).await;
            }
        }
        Step::Set { name } => {
            store.budgets.set(rule(name, |rule| rule.tokens = Some(NEEDED - 1)), None, NOW).await.unwrap();
        }
        Step::Raise { name, tokens } => {
            let tokens = i64::try_from(*tokens).unwrap();
            store.budgets.raise(name, None, Raise { tokens, ..Raise::default() }, NOW).await.unwrap();
        }
        Step::Delete { name } => {
            store.budgets.forget(name, None, NOW).await.unwrap();
        }
        Step::RaiseOwn { job, tokens } => {
            let change = OwnBudget { tokens: Some(*tokens), ..OwnBudget::default() };
            store.budgets.set_own(&engagement(&claims[*job]), None, change, NOW).await.unwrap();
        }
    }
}

/// Runs a history whose steps in a group run at once, from two processes where the store has several. Then every limit goes,
/// and every job has to go on.
async fn history(backend: Backend, groups: &[Vec<Step>]) {
    let at = open(backend).await;
    let other = if backend == Backend::Postgres { Some(at.place.open().await) } else { None };
    let operator = other.as_ref().unwrap_or(&at.store);
    let jobs = (0..JOBS).map(|_| {
        let mut job = agent(Some(NEEDED - 1));
        job.terms.tenant = Some("acme".to_owned());
        job
    });
    at.store.intake.push(jobs.collect()).await.unwrap();
    let claims = at.claim(JobKind::Agent, JOBS).await;
    let mut free = claims.iter();
    for group in groups {
        let steps = group.iter().map(|step| {
            let claim = if matches!(step, Step::Call { .. }) { free.next() } else { None };
            perform(&at, operator, step, claim, &claims)
        });
        futures::future::join_all(steps).await;
    }
    for claim in free {
        call(&at.store, claim, &BUDGETS).await;
    }
    for name in BUDGETS {
        operator.budgets.forget(name, None, NOW).await.unwrap();
    }
    for claim in &claims {
        let change = OwnBudget { tokens: Some(None), ..OwnBudget::default() };
        operator.budgets.set_own(&engagement(claim), None, change, NOW).await.unwrap();
    }
    while at.perform(Duty::PromoteDue, NOW.plus_ms(5_000)).await > 0 {}
    for claim in &claims {
        let state = at.state(&claim.job).await;
        assert!(matches!(state, JobState::Available | JobState::Active), "{state:?}: {groups:?}");
    }
    assert_eq!(at.query("SELECT count(*) FROM budget_waits").await, 0);
}

fn run(backend: Backend, groups: &[Vec<Step>]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(history(backend, groups));
}

fn groups() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec(step(), 1..6), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn no_job_waits_for_a_budget_that_is_gone_on_sqlite(groups in groups()) {
        run(Backend::Sqlite, &groups);
    }

    #[test]
    #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
    fn no_job_waits_for_a_budget_that_is_gone_on_postgres(groups in groups()) {
        run(Backend::Postgres, &groups);
    }
}

/// Thousands of jobs park while their budget is deleted again and again by another process.
#[ignore = "long: thousands of jobs park beside deletions"]
#[test]
fn no_job_waits_for_a_budget_that_is_deleted_while_it_parks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let at = open(Backend::Postgres).await;
        let other = at.place.open().await;
        for _ in 0..60 {
            let set = rule("fleet", |rule| rule.tokens = Some(NEEDED - 1));
            other.budgets.set(set, None, NOW).await.unwrap();
            at.store.intake.push((0..50).map(|_| agent(None)).collect()).await.unwrap();
            let claims = at.claim(JobKind::Agent, 50).await;
            let calls = claims.iter().map(|claim| call(&at.store, claim, &["fleet"]));
            let (_, gone) =
                tokio::join!(futures::future::join_all(calls), other.budgets.forget("fleet", None, NOW));
            assert!(gone.unwrap());
            while at.perform(Duty::PromoteDue, NOW.plus_ms(5_000)).await > 0 {}
            assert_eq!(at.query("SELECT count(*) FROM jobs WHERE state = 'pending'").await, 0);
            at.store.upkeep.release_all(NOW).await.unwrap();
            for claim in at.claim_at(JobKind::Agent, 500, NOW.plus_ms(5_000)).await {
                at.settle(&claim.lease, complete()).await;
            }
        }
    });
}

/// The duty finds waits that no change of a budget ends any more.
async fn a_lost_wait_is_found(at: &Opened) {
    at.store.budgets.set(rule("fleet", |rule| rule.tokens = Some(1)), None, NOW).await.unwrap();
    let held = at.held(None).await;
    assert!(!call(&at.store, &held, &["fleet"]).await);
    assert_eq!(at.perform(Duty::FindLostWaits, NOW).await, 0, "the budget still limits it");
    // As if the deletion had missed the wait.
    at.query("DELETE FROM budget_rules").await;
    assert_eq!(at.perform(Duty::FindLostWaits, NOW).await, 1);
    assert_eq!(at.perform(Duty::PromoteDue, NOW).await, 1);
    assert_eq!(at.state(&held.job).await, JobState::Available);
}
