//! The stores of two processes on one database, at the same time.

use super::{few, migrated, opened};
use crate::conformance::jobs::{NOW, agent, plain, request};
use crate::conformance::workflows::{step, workflow};
use futures::future::join_all;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::error::FailureKind;
use turnstone_domain::workflow::WorkflowKind;
use turnstone_domain::{AgentDefinition, EventName, JobError, JobId, JobState, NewJob};
use turnstone_store::{
    ClaimRequest, EventFilter, JobFilter, JobKind, LeasedJob, NewAgent, NewTenants, NewWorkflow, Page,
    RemoteOutcome, Report, ReportedEnd, Store, StoreError,
};
use turnstone_tests::servers::Database;
use turnstone_tests::wait;

/// The stores; the database is removed with this.
struct Pair {
    one: Store,
    other: Store,
    _database: Database,
}

async fn pair() -> Pair {
    let database = migrated().await;
    let options = few(&database.url);
    Pair { one: opened(&options).await, other: opened(&options).await, _database: database }
}

impl Pair {
    fn any(&self, at: usize) -> &Store {
        if at.is_multiple_of(2) { &self.one } else { &self.other }
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn no_job_is_claimed_twice_and_every_claim_is_in_order() {
    const JOBS: usize = 600;
    let pair = pair().await;
    // The batches arrive one after the other, so the order of arrival is known.
    let mut rank: HashMap<JobId, (i64, usize)> = HashMap::new();
    for batch in 0..12 {
        let jobs: Vec<NewJob> = (0..JOBS / 12).map(|n| plain(i64::try_from(n % 3).unwrap())).collect();
        for job in &jobs {
            rank.insert(job.id.clone(), (-job.priority, rank.len()));
        }
        pair.any(batch).intake.push(jobs).await.unwrap();
    }
    let taken = Arc::new(AtomicUsize::new(0));
    let claimers = (0..16).map(|at| {
        let (ledger, taken) = (Arc::clone(&pair.any(at).ledger), Arc::clone(&taken));
        tokio::spawn(async move {
            let mut claims = Vec::new();
            while taken.load(Ordering::SeqCst) < JOBS {
                let claimed = ledger.claim(request(JobKind::Plain, 1 + at, NOW)).await.unwrap();
                taken.fetch_add(claimed.len(), Ordering::SeqCst);
                claims.push(claimed.into_iter().map(|claim| claim.job).collect::<Vec<_>>());
            }
            claims
        })
    });
    let claims = wait::output("all jobs are claimed", join_all(claimers)).await;
    let claims: Vec<Vec<JobId>> = claims.into_iter().flat_map(Result::unwrap).collect();
    for claim in &claims {
        assert!(claim.is_sorted_by_key(|id| rank[id]), "a claim is not in order: {claim:?}");
    }
    let all: Vec<&JobId> = claims.iter().flatten().collect();
    let different: BTreeSet<&JobId> = all.iter().copied().collect();
    assert_eq!((all.len(), different.len()), (JOBS, JOBS));
}

fn reported(job: &JobId, worker: &str, end: ReportedEnd) -> Report {
    Report { job: job.clone(), worker: Some(worker.to_owned()), tenant: None, token: None, end, at: NOW }
}

fn of(job: &JobId) -> LeasedJob {
    LeasedJob { job: job.clone(), tenant: None, token: None }
}

async fn fetched_by(store: &Store, worker: &str) -> JobId {
    let request = ClaimRequest { worker_id: worker.to_owned(), ..request(JobKind::Plain, 1, NOW) };
    store.remote.fetch(request).await.unwrap().pop().expect("a job").job.id
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_end_follows_the_events_that_another_process_added() {
    let pair = pair().await;
    let ends = [
        ReportedEnd::Done { result: "done".into() },
        ReportedEnd::Failed { error: JobError::new(FailureKind::Tool, "it broke") },
        ReportedEnd::Back,
    ];
    for end in ends {
        pair.one.intake.push(vec![plain(0)]).await.unwrap();
        let job = fetched_by(&pair.one, "w").await;
        pair.other.remote.save_state(of(&job), "1".into(), NOW).await.unwrap();
        let outcome = pair.one.remote.report(reported(&job, "w", end)).await.unwrap();
        assert!(matches!(outcome, RemoteOutcome::Done(_)), "{outcome:?}");
        let events = pair.one.views.events_after(&EventFilter::Job(job.clone()), 0, 100).await.unwrap();
        let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..).take(events.len()).collect::<Vec<i64>>());
        assert_eq!(events[2].name, EventName::JobCheckpointed);
        assert!(events.len() > 3);
        pair.one.intake.cancel(&job, NOW).await.unwrap();
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn only_the_worker_that_holds_a_plain_job_ends_it() {
    let pair = pair().await;
    pair.one.intake.push(vec![plain(0)]).await.unwrap();
    let job = fetched_by(&pair.one, "first").await;
    let back = pair.other.remote.report(reported(&job, "first", ReportedEnd::Back)).await.unwrap();
    assert!(matches!(back, RemoteOutcome::Done(_)), "{back:?}");
    assert_eq!(fetched_by(&pair.other, "second").await, job);
    let end = || ReportedEnd::Done { result: "done".into() };
    let late = pair.one.remote.report(reported(&job, "first", end())).await.unwrap();
    assert_eq!(late, RemoteOutcome::NotYours { holder: "second".to_owned() });
    let done = pair.one.remote.report(reported(&job, "second", end())).await.unwrap();
    assert!(matches!(done, RemoteOutcome::Done(_)), "{done:?}");
    let twice = pair.other.remote.report(reported(&job, "second", end())).await.unwrap();
    assert_eq!(twice, RemoteOutcome::WrongState(JobState::Completed));
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn of_two_pushes_of_one_id_one_wins_and_the_other_conflicts() {
    let pair = pair().await;
    for round in 0..25 {
        let contested = if round % 2 == 0 { plain(0) } else { agent(Some(5)) };
        // Each batch has a job of its own, which succeeds or fails with the contested one.
        let batches = [0, 1].map(|_| vec![plain(0), contested.clone(), plain(0)]);
        let own = batches.clone().map(|batch| batch[0].id.clone());
        let [left, right] = batches;
        let (left, right) = tokio::join!(pair.one.intake.push(left), pair.other.intake.push(right));
        let won = [left.is_ok(), right.is_ok()];
        assert_ne!(won[0], won[1], "{left:?} {right:?}");
        let refused = left.err().or(right.err()).unwrap();
        assert!(matches!(&refused, StoreError::DuplicateJob(id) if *id == contested.id), "{refused}");
        for (id, won) in own.iter().zip(won) {
            assert_eq!(
                pair.one.views.job(id).await.unwrap().is_some(),
                won,
                "a batch is taken whole or not at all"
            );
        }
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn pushes_that_share_agents_and_queues_do_not_fail_one_another() {
    let pair = pair().await;
    // Every push has the same new queues and definitions, in another order.
    let pushes = (0_usize..40).map(|at| {
        let mut jobs: Vec<NewJob> =
            (0..10).map(|n| NewJob { queue: format!("q{n}"), ..agent(Some(1_000 + i64::from(n))) }).collect();
        jobs.rotate_left(at % 10);
        pair.any(at).intake.push(jobs)
    });
    let pushed = wait::output("every push is answered", join_all(pushes)).await;
    assert_eq!(pushed.into_iter().map(|pushed| pushed.unwrap().len()).sum::<usize>(), 400);
    let claims = pair.one.ledger.claim(request(JobKind::Agent, 1_000, NOW)).await.unwrap();
    assert_eq!(claims.len(), 400);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_agent_that_both_register_is_stored_once() {
    let pair = pair().await;
    let version = |budget| {
        let mut definition = AgentDefinition { name: "a".into(), ..AgentDefinition::default() };
        definition.limits.token_budget = Some(budget);
        NewAgent { definition, source: format!("budget: {budget}"), tenants: NewTenants::All, at: NOW }
    };
    for round in 0..25 {
        let (one, other) = (version(2 * round), version(2 * round + 1));
        let (first, second) = tokio::join!(
            pair.one.intake.register_agent(one.clone()),
            pair.other.intake.register_agent(other.clone())
        );
        assert!(first.unwrap() && second.unwrap(), "both changed the existing one");
        let agents = pair.one.views.agents(None).await.unwrap();
        assert_eq!(agents.len(), 1);
        let kept = if agents[0].source == one.source { one } else { other };
        assert_eq!(agents[0].source, kept.source);
        let (first, second) = tokio::join!(
            pair.one.intake.register_agent(kept.clone()),
            pair.other.intake.register_agent(kept)
        );
        assert!(!first.unwrap() && !second.unwrap(), "an equal definition changes nothing");
    }
}

/// One wins and the other one gets a conflict, however their transactions overlap: the API answers 201 and 409.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn of_two_workflows_of_one_id_one_is_made() {
    let pair = pair().await;
    for round in 0..25 {
        let [left, right] = [0, 1].map(|_| workflow(WorkflowKind::Group, vec![step(&[]), step(&[])]));
        let right = NewWorkflow { id: left.id.clone(), ..right };
        let id = left.id.clone();
        let (left, right) = tokio::join!(pair.one.workflows.create(left), pair.other.workflows.create(right));
        assert_ne!(left.is_ok(), right.is_ok(), "{left:?} {right:?}");
        let refused = left.err().or(right.err()).unwrap();
        assert!(matches!(&refused, StoreError::DuplicateWorkflow(taken) if *taken == id), "{refused}");
        let (jobs, total) =
            pair.one.views.jobs(&JobFilter::default(), Page { limit: 1, offset: 0 }).await.unwrap();
        assert_eq!((jobs.len(), total), (1, 2 * (round + 1)), "the other left no step behind");
    }
}
