//! The store keeps circuit breakers, so all processes share them (RS-26, RS-47). The rules themselves are tests of
//! `turnstone_domain::breaker`.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, agent};
use super::on_every_store;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, JobId, JobState, Lease, Settlement, Timestamp};
use turnstone_store::breakers::{BreakerKey, BreakerStep, DETAIL, Passage, Stepped};
use turnstone_store::{Duty, JobKind};

on_every_store![
    the_fifth_failure_in_a_row_opens_it,
    a_success_resets_the_count_of_failures,
    rare_trials_close_it,
    a_trial_that_was_not_made_frees_its_place,
    a_trial_ends_with_the_lease_of_its_job,
    a_lost_trial_makes_room_for_a_waiting_job,
    concurrent_failures_all_count,
    a_refused_job_is_released_as_the_breaker_closes,
    a_reset_releases_every_waiting_job,
    a_late_success_does_not_delay_the_release,
    a_job_that_is_refused_while_the_breaker_closes_is_released,
    a_job_that_is_refused_late_is_released_although_calls_failed_since,
];

const RULE: Breaker = Breaker {
    enabled: true,
    failure_threshold: 5,
    failure_share: 100,
    once_per_job: false,
    timeout_ms: 60_000,
    half_open_requests: 3,
};
const AFTER: Timestamp = Timestamp(NOW.0 + 60_000);

fn key() -> BreakerKey {
    BreakerKey::model("provider", "m")
}

async fn step(at: &Opened, step: BreakerStep, now: Timestamp) -> Stepped {
    at.store.breakers.step(&key(), &RULE, step, now).await.unwrap()
}

async fn fail(at: &Opened, times: usize, now: Timestamp) -> Option<Timestamp> {
    let mut opened = None;
    for _ in 0..times {
        opened = step(at, BreakerStep::Failed { job: "j".into(), successes: 0 }, now).await.opened_until;
    }
    opened
}

async fn pass(at: &Opened, lease: &Lease, now: Timestamp) -> Passage {
    step(at, BreakerStep::Pass { lease: lease.clone() }, now).await.passage
}

/// Returns the lease of a new job.
async fn lease(at: &Opened) -> Lease {
    at.held(None).await.lease
}

async fn succeed(at: &Opened, lease: &Lease, now: Timestamp) {
    step(at, BreakerStep::TrialSucceeded { job: lease.job.0.clone() }, now).await;
}

/// RS-26: threshold 5, timeout 60 s.
async fn the_fifth_failure_in_a_row_opens_it(at: &Opened) {
    let lease = lease(at).await;
    assert_eq!(fail(at, 4, NOW).await, None);
    assert_eq!(pass(at, &lease, NOW).await, Passage::Free);
    assert_eq!(fail(at, 1, NOW).await, Some(AFTER));
    assert_eq!(pass(at, &lease, AFTER.plus_ms(-1)).await, Passage::Refused { until: AFTER });
    let other = BreakerKey::tool("other", "search");
    let requested = BreakerStep::Pass { lease };
    let stepped = at.store.breakers.step(&other, &RULE, requested, NOW).await.unwrap();
    assert_eq!(stepped.passage, Passage::Free);
    let troubled = at.store.breakers.troubled().await.unwrap();
    assert_eq!((troubled.len(), troubled[0].open_until, troubled[0].failures), (1, Some(AFTER), 5));
    assert_eq!(troubled[0].key, key());
}

async fn a_success_resets_the_count_of_failures(at: &Opened) {
    fail(at, 4, NOW).await;
    step(at, BreakerStep::Succeeded { successes: 1 }, NOW).await;
    assert_eq!(at.store.breakers.troubled().await.unwrap(), []);
    assert_eq!(fail(at, 4, NOW).await, None);
    // A success of a call that began before the breaker opened does not close it.
    fail(at, 1, NOW).await;
    step(at, BreakerStep::Succeeded { successes: 1 }, NOW).await;
    assert_eq!(pass(at, &lease(at).await, NOW).await, Passage::Refused { until: AFTER });
}

/// RS-47: `half_open_requests` 3. Three trial calls that succeed close it, however long it is from one to the next.
async fn rare_trials_close_it(at: &Opened) {
    fail(at, 5, NOW).await;
    let lease = lease(at).await;
    for hour in 1..=3 {
        let now = NOW.plus_ms(hour * 3_600_000);
        assert_eq!(pass(at, &lease, now).await, Passage::Trial);
        succeed(at, &lease, now).await;
    }
    assert_eq!(at.store.breakers.troubled().await.unwrap(), []);
}

async fn a_trial_that_was_not_made_frees_its_place(at: &Opened) {
    fail(at, 5, NOW).await;
    let [first, second] = [lease(at).await, lease(at).await];
    assert_eq!(pass(at, &first, AFTER).await, Passage::Trial);
    assert!(matches!(pass(at, &second, AFTER).await, Passage::Refused { .. }));
    step(at, BreakerStep::TrialNotMade { job: first.job.0.clone() }, AFTER).await;
    assert_eq!(pass(at, &second, AFTER).await, Passage::Trial);
}

/// When the worker of a trial call dies, or its job is cancelled, the trial's place is free again.
async fn a_trial_ends_with_the_lease_of_its_job(at: &Opened) {
    fail(at, 5, NOW).await;
    let killed = lease(at).await;
    assert_eq!(pass(at, &killed, AFTER).await, Passage::Trial);
    for _ in 0..2 {
        at.push(agent(None)).await;
    }
    let others = at.claim_at(JobKind::Agent, 2, AFTER).await;
    let (cancelled, next) = (&others[0].lease, &others[1].lease);
    assert!(matches!(pass(at, cancelled, AFTER).await, Passage::Refused { .. }));
    assert_eq!(at.perform(Duty::ReapExpired, AFTER).await, 1);
    assert_eq!(pass(at, cancelled, AFTER).await, Passage::Trial);
    assert!(matches!(pass(at, next, AFTER).await, Passage::Refused { .. }));
    at.store.intake.cancel(&cancelled.job, AFTER).await.unwrap();
    assert_eq!(pass(at, next, AFTER).await, Passage::Trial);
}

/// A worker dies in its trial call; the scheduler releases a waiting job in its place.
async fn a_lost_trial_makes_room_for_a_waiting_job(at: &Opened) {
    fail(at, 5, NOW).await;
    let waiting = refused(at, 2).await;
    promote(at, AFTER).await;
    let trial = at.claim_at(JobKind::Agent, 1, AFTER).await.remove(0).lease;
    assert_eq!(pass(at, &trial, AFTER).await, Passage::Trial);
    promote(at, AFTER.plus_ms(1_000)).await;
    assert_eq!(available(at, &waiting).await, 0, "the place is taken");
    at.perform(Duty::ReapExpired, AFTER.plus_ms(LEASE)).await;
    promote(at, AFTER.plus_ms(LEASE)).await;
    assert_eq!(available(at, &waiting).await, 2, "the job of the dead worker, and the next one");
}

async fn concurrent_failures_all_count(at: &Opened) {
    let key = key();
    let failures = (0..5).map(|_| {
        at.store.breakers.step(&key, &RULE, BreakerStep::Failed { job: "j".into(), successes: 0 }, NOW)
    });
    let stepped = futures::future::join_all(failures).await;
    let opened = stepped.into_iter().filter_map(|stepped| stepped.unwrap().opened_until).count();
    assert_eq!(opened, 1, "the last of five, whichever it is");
    assert_eq!(pass(at, &lease(at).await, NOW).await, Passage::Refused { until: AFTER });
}

/// Enqueues agent jobs, claims them, and settles each as one that the breaker refused.
async fn refused(at: &Opened, count: usize) -> Vec<JobId> {
    let mut refused = Vec::new();
    for _ in 0..count {
        let claim = at.held(None).await;
        let error = JobError::new(FailureKind::CircuitOpen, "refused").with(DETAIL, key().name());
        let settlement = Settlement::Retry { error, run_at: NOW.plus_ms(90_000), delay_ms: 90_000 };
        at.settle(&claim.lease, settlement).await;
        refused.push(claim.job);
    }
    refused
}

async fn available(at: &Opened, jobs: &[JobId]) -> usize {
    let mut count = 0;
    for job in jobs {
        count += usize::from(at.state(job).await == JobState::Available);
    }
    count
}

async fn promote(at: &Opened, now: Timestamp) {
    at.perform(Duty::PromoteDue, now).await;
}

/// The half-open breaker releases one waiting job, then two, and all of them once it is closed.
async fn a_refused_job_is_released_as_the_breaker_closes(at: &Opened) {
    fail(at, 5, NOW).await;
    let waiting = refused(at, 6).await;
    promote(at, AFTER.plus_ms(-1)).await;
    assert_eq!(available(at, &waiting).await, 0, "it is open");
    promote(at, AFTER).await;
    assert_eq!(available(at, &waiting).await, 1);
    for (trials, released) in [(1, 2), (2, 3)] {
        let trials = at.claim(JobKind::Agent, trials).await;
        for trial in &trials {
            assert_eq!(pass(at, &trial.lease, AFTER).await, Passage::Trial);
        }
        for trial in &trials {
            succeed(at, &trial.lease, AFTER).await;
        }
        assert_eq!(available(at, &waiting).await, released);
    }
    assert_eq!(at.query("SELECT count(*) FROM breaker_waits").await, 0);
    assert_eq!(at.query("SELECT count(*) FROM breakers").await, 0);
}

async fn a_reset_releases_every_waiting_job(at: &Opened) {
    fail(at, 5, NOW).await;
    let waiting = refused(at, 3).await;
    assert!(at.store.breakers.reset(&key(), NOW).await.unwrap());
    assert_eq!(available(at, &waiting).await, 3);
    assert!(!at.store.breakers.reset(&key(), NOW).await.unwrap());
}

/// Calls that began before the breaker opened may succeed while it is half-open.
async fn a_late_success_does_not_delay_the_release(at: &Opened) {
    fail(at, 5, NOW).await;
    let waiting = refused(at, 1).await;
    step(at, BreakerStep::Succeeded { successes: 1 }, AFTER).await;
    promote(at, AFTER).await;
    assert_eq!(available(at, &waiting).await, 1);
}

/// The settlement of a refused job may be written after the breaker closed.
async fn a_job_that_is_refused_while_the_breaker_closes_is_released(at: &Opened) {
    let waiting = refused(at, 1).await;
    assert_eq!(available(at, &waiting).await, 0);
    assert_eq!(at.store.breakers.troubled().await.unwrap(), []);
    promote(at, NOW).await;
    assert_eq!(available(at, &waiting).await, 1);
    promote(at, NOW).await;
    assert_eq!(at.query("SELECT count(*) FROM breakers").await, 0);
}

/// The same when calls have failed since the breaker closed.
async fn a_job_that_is_refused_late_is_released_although_calls_failed_since(at: &Opened) {
    fail(at, 1, NOW).await;
    promote(at, NOW).await;
    let waiting = refused(at, 2).await;
    promote(at, NOW).await;
    assert_eq!(available(at, &waiting).await, 2);
    let troubled = at.store.breakers.troubled().await.unwrap();
    assert_eq!((troubled.len(), troubled[0].failures), (1, 1), "the failure counts all the same");
}
