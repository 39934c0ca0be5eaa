//! A waiting input is cancelled while the one before it ends, on a real PostgreSQL and in two processes.

use super::{few, migrated, opened};
use crate::conformance::jobs::{NOW, agent, complete, nothing, request};
use futures::future::{join, join_all};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::terms::Continues;
use turnstone_domain::{Ids, JobId, JobState, NewJob};
use turnstone_store::{Bulk, CancelOutcome, JobAction, JobFilter, JobKind, Store, StoreError};
use turnstone_tests::Place;

/// The number of concurrent engagements.
const PAIRS: usize = 40;
const ROUNDS: usize = 5;

/// Returns a further input of the engagement that a job began.
fn further(first: &NewJob) -> NewJob {
    let mut job = NewJob { id: JobId(SystemIds.next()), ..first.clone() };
    job.terms.continues = Some(Continues::Always);
    job
}

/// Returns the same with another type, which a filter selects.
fn found(first: &NewJob) -> NewJob {
    NewJob { job_type: "found".into(), ..further(first) }
}

/// Cancels all jobs of that type, until none is left.
async fn cancel_found(store: &Store) -> Result<(), StoreError> {
    let filter = JobFilter { job_type: Some("found".into()), ..JobFilter::default() };
    let bulk = Bulk {
        action: JobAction::Cancel,
        dead_letters: false,
        states: Vec::new(),
        filter,
        most: usize::MAX,
        dry_run: false,
        at: NOW,
    };
    while store.operate.bulk(bulk.clone()).await?.matched > 0 {}
    Ok(())
}

/// How the waiting inputs are cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    OneByOne,
    Together,
}

/// Of three inputs the first one ends and the second one is cancelled at the same time, in many engagements at once.
/// The database never has to resolve a deadlock, and the third input is next in each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_waiting_input_is_cancelled_as_the_one_before_it_ends() {
    cancelled_as_the_one_before_ends(Way::OneByOne).await;
}

/// The same when all waiting inputs are cancelled in one call.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn waiting_inputs_are_cancelled_together_as_those_before_them_end() {
    cancelled_as_the_one_before_ends(Way::Together).await;
}

async fn cancelled_as_the_one_before_ends(way: Way) {
    let database = migrated().await;
    let options = few(&database.url);
    let (one, other) = (opened(&options).await, opened(&options).await);
    for round in 0..ROUNDS {
        let firsts: Vec<NewJob> = (0..PAIRS).map(|_| agent(None)).collect();
        let seconds: Vec<NewJob> = firsts.iter().map(found).collect();
        let thirds: Vec<NewJob> = firsts.iter().map(further).collect();
        for jobs in [&firsts, &seconds, &thirds] {
            one.intake.push(jobs.clone()).await.unwrap();
        }
        let claims = one.ledger.claim(request(JobKind::Agent, PAIRS, NOW)).await.unwrap();
        assert_eq!(claims.len(), PAIRS);
        let ends = claims.iter().map(|claim| one.ledger.settle(&claim.lease, nothing(), complete(), NOW));
        let cancels = async {
            if way == Way::Together {
                return cancel_found(&other).await.unwrap();
            }
            for outcome in join_all(seconds.iter().map(|job| other.intake.cancel(&job.id, NOW))).await {
                assert!(matches!(outcome.unwrap(), CancelOutcome::Cancelled { .. }));
            }
        };
        let (ended, ()) = join(join_all(ends), cancels).await;
        ended.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
        if way == Way::Together {
            // An input that became available after the last look at that state.
            cancel_found(&other).await.unwrap();
        }
        for (jobs, state) in
            [(&firsts, JobState::Completed), (&seconds, JobState::Cancelled), (&thirds, JobState::Available)]
        {
            for job in jobs {
                let now = one.views.job(&job.id).await.unwrap().unwrap().state;
                assert_eq!(now, state, "round {round}: {}", job.id);
            }
        }
        let next = other.ledger.claim(request(JobKind::Agent, PAIRS, NOW)).await.unwrap();
        assert_eq!(next.len(), PAIRS, "the last ones are next");
        let ends = next.iter().map(|claim| other.ledger.settle(&claim.lease, nothing(), complete(), NOW));
        join_all(ends).await.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    }
    let broken = "SELECT CAST(deadlocks AS BIGINT) FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(Place::from(&database).number(broken).await, 0, "circles of transactions");
}
