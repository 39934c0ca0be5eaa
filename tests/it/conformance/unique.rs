//! Unique jobs: which job conflicts, the outcome of both, and one winner of many.

use super::backend::Opened;
use super::jobs::{NOW, complete, plain};
use super::on_every_store;
use turnstone_domain::terms::{OnConflict, Unique};
use turnstone_domain::{EventName, JobId, JobState, NewJob, Timestamp};
use turnstone_store::{CancelOutcome, JobKind, StoreError};

on_every_store![
    a_refused_job_leaves_nothing_and_names_the_other,
    the_states_are_those_of_the_new_request,
    a_period_counts_from_the_acceptance_of_the_other,
    an_ignored_job_returns_the_other_one,
    a_replaced_job_is_cancelled,
    an_active_job_that_is_replaced_loses_its_lease,
    a_job_that_keeps_the_schedule_runs_when_the_other_would_have,
    an_ended_job_is_not_replaced,
    jobs_of_one_push_are_compared_with_one_another,
    tenants_do_not_conflict,
    of_many_at_once_exactly_one_is_stored,
    of_many_at_once_exactly_one_is_left,
];

const LIVE: [JobState; 5] =
    [JobState::Available, JobState::Active, JobState::Scheduled, JobState::Retryable, JobState::Pending];

fn unique(key: &str, on_conflict: OnConflict, states: &[JobState]) -> NewJob {
    let mut job = plain(0);
    let (fingerprint, states) = (key.to_owned(), states.to_vec());
    job.terms.unique = Some(Unique { fingerprint, period_ms: None, states, on_conflict });
    job
}

fn within(mut job: NewJob, period_ms: i64, now: Timestamp) -> NewJob {
    job.terms.unique.as_mut().unwrap().period_ms = Some(period_ms);
    (job.created_at, job.run_at) = (now, now);
    job
}

async fn refused(at: &Opened, job: NewJob) -> JobId {
    let id = job.id.clone();
    match at.store.intake.push(vec![plain(0), job]).await {
        Err(StoreError::NotUnique { job, existing }) if job == id => existing,
        other => panic!("{other:?}"),
    }
}

async fn a_refused_job_leaves_nothing_and_names_the_other(at: &Opened) {
    let first = at.push(unique("k", OnConflict::Reject, &LIVE)).await;
    at.push(unique("other", OnConflict::Reject, &LIVE)).await;
    assert_eq!(refused(at, unique("k", OnConflict::Reject, &LIVE)).await, first);
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 2, "the push is refused as a whole");
    let same = NewJob { id: first.clone(), ..unique("k", OnConflict::Reject, &LIVE) };
    let twice = at.store.intake.push(vec![same]).await.unwrap_err();
    assert!(
        matches!(twice, StoreError::DuplicateJob(id) if id == first),
        "a repeated id returns the first job"
    );
}

async fn the_states_are_those_of_the_new_request(at: &Opened) {
    let first = at.push(unique("k", OnConflict::Reject, &[])).await;
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    let second = at.push(unique("k", OnConflict::Reject, &[JobState::Available])).await;
    assert_eq!(refused(at, unique("k", OnConflict::Reject, &[JobState::Active])).await, first);
    assert_eq!(
        at.store.intake.cancel(&second, NOW).await.unwrap(),
        CancelOutcome::Cancelled { previous: JobState::Available }
    );
    at.settle(&held.lease, complete()).await;
    assert_eq!(refused(at, unique("k", OnConflict::Reject, &[JobState::Completed])).await, first);
    assert_eq!(refused(at, unique("k", OnConflict::Reject, &[JobState::Cancelled])).await, second);
    at.push(unique("k", OnConflict::Reject, &LIVE)).await;
}

async fn a_period_counts_from_the_acceptance_of_the_other(at: &Opened) {
    let first = at.push(unique("k", OnConflict::Reject, &LIVE)).await;
    let inside = within(unique("k", OnConflict::Reject, &LIVE), 1000, NOW.plus_ms(999));
    assert_eq!(refused(at, inside).await, first);
    let outside = within(unique("k", OnConflict::Reject, &LIVE), 1000, NOW.plus_ms(1000));
    let second = at.push(outside).await;
    assert_eq!(refused(at, unique("k", OnConflict::Reject, &LIVE)).await, second, "the newest is named");
}

async fn an_ignored_job_returns_the_other_one(at: &Opened) {
    let first = at.push(unique("k", OnConflict::Ignore, &LIVE)).await;
    at.claim(JobKind::Plain, 1).await;
    let pushed = at.store.intake.push(vec![plain(0), unique("k", OnConflict::Ignore, &LIVE)]).await.unwrap();
    assert_eq!((&pushed[1].id, pushed[1].state, pushed[1].deduplicated), (&first, JobState::Active, true));
    assert!(!pushed[0].deduplicated);
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 2);
}

async fn a_replaced_job_is_cancelled(at: &Opened) {
    let first = at.push(unique("k", OnConflict::Replace, &LIVE)).await;
    let second = at.push(unique("k", OnConflict::Replace, &LIVE)).await;
    assert_eq!((at.state(&first).await, at.state(&second).await), (JobState::Cancelled, JobState::Available));
    assert_eq!(at.events(&first).await, [EventName::JobEnqueued, EventName::JobCancelled]);
    assert_eq!(refused(at, unique("k", OnConflict::Reject, &LIVE)).await, second);
}

async fn an_active_job_that_is_replaced_loses_its_lease(at: &Opened) {
    at.push(unique("k", OnConflict::Replace, &LIVE)).await;
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    at.push(unique("k", OnConflict::Replace, &[JobState::Available])).await;
    assert_eq!(at.state(&held.job).await, JobState::Active, "it was not in the way");
    at.push(unique("k", OnConflict::Replace, &LIVE)).await;
    assert_eq!(
        at.store.ledger.reads().lost(std::slice::from_ref(&held.lease)).await.unwrap(),
        [held.lease.token]
    );
    assert_eq!(
        at.query("SELECT count(*) FROM jobs WHERE state = 'cancelled'").await,
        2,
        "all that are in the way"
    );
}

async fn a_job_that_keeps_the_schedule_runs_when_the_other_would_have(at: &Opened) {
    let later = NOW.plus_ms(60_000);
    let first = NewJob { run_at: later, ..unique("k", OnConflict::Reject, &LIVE) };
    let first = at.push(first).await;
    let second = at.push(unique("k", OnConflict::ReplaceExceptSchedule, &LIVE)).await;
    let kept = at.job(&second).await;
    assert_eq!((kept.state, kept.run_at), (JobState::Scheduled, later));
    assert_eq!(at.state(&first).await, JobState::Cancelled);
    let third = at.push(unique("k", OnConflict::Replace, &LIVE)).await;
    assert_eq!(at.state(&third).await, JobState::Available);
}

async fn an_ended_job_is_not_replaced(at: &Opened) {
    at.push(unique("k", OnConflict::Reject, &LIVE)).await;
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    at.settle(&held.lease, complete()).await;
    let next = at.push(unique("k", OnConflict::Replace, &[JobState::Completed])).await;
    assert_eq!(
        (at.state(&held.job).await, at.state(&next).await),
        (JobState::Completed, JobState::Available)
    );
}

async fn jobs_of_one_push_are_compared_with_one_another(at: &Opened) {
    let first = unique("k", OnConflict::Reject, &LIVE);
    let refused = at.store.intake.push(vec![first.clone(), unique("k", OnConflict::Reject, &LIVE)]).await;
    assert!(matches!(refused, Err(StoreError::NotUnique { existing, .. }) if existing == first.id));
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 0);
    let (second, third) = (unique("k", OnConflict::Ignore, &LIVE), unique("k", OnConflict::Replace, &LIVE));
    let pushed = at.store.intake.push(vec![first.clone(), second, third.clone()]).await.unwrap();
    assert_eq!(pushed.iter().map(|pushed| pushed.deduplicated).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(
        (at.state(&first.id).await, at.state(&third.id).await),
        (JobState::Cancelled, JobState::Available)
    );
}

async fn tenants_do_not_conflict(at: &Opened) {
    let of = |tenant: Option<&str>| {
        let mut job = unique("k", OnConflict::Reject, &LIVE);
        job.terms.tenant = tenant.map(str::to_owned);
        job
    };
    at.push(of(None)).await;
    let alpha = at.push(of(Some("alpha"))).await;
    at.push(of(Some("beta"))).await;
    assert_eq!(refused(at, of(Some("alpha"))).await, alpha);
}

async fn of_many_at_once_exactly_one_is_stored(at: &Opened) {
    let second = at.place.open().await;
    for round in 0..10 {
        let key = format!("k{round}");
        let pushes = (0..8).map(|n| {
            let intake = if n % 2 == 0 { &at.store.intake } else { &second.intake };
            intake.push(vec![plain(0), unique(&key, OnConflict::Reject, &LIVE)])
        });
        let stored = futures::future::join_all(pushes).await;
        let (won, lost): (Vec<_>, Vec<_>) = stored.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "{lost:?}");
        let existing = won[0].as_ref().unwrap()[1].id.clone();
        for refused in lost {
            let refused = refused.unwrap_err();
            let named = matches!(&refused, StoreError::NotUnique { existing: id, .. } if *id == existing);
            assert!(named, "{refused}");
        }
    }
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 20);
}

async fn of_many_at_once_exactly_one_is_left(at: &Opened) {
    let second = at.place.open().await;
    let pushes = (0..40).map(|n| {
        let intake = if n % 2 == 0 { &at.store.intake } else { &second.intake };
        intake.push(vec![unique("k", OnConflict::Replace, &LIVE)])
    });
    assert!(futures::future::join_all(pushes).await.iter().all(Result::is_ok));
    assert_eq!(at.query("SELECT count(*) FROM jobs WHERE ended_at IS NULL").await, 1);
    assert_eq!(at.query("SELECT count(*) FROM jobs WHERE state = 'cancelled'").await, 39);
    assert_eq!(at.query(&turnstone_tests::journal::event_count("job.cancelled")).await, 39);
}
