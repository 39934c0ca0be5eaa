//! A clock that steps by 20 minutes. Leases, attempts and pauses keep their lengths.

use super::backend::Opened;
use super::fleet::{TERM_MS, beat, lead};
use super::jobs::{LAPSED, LEASE, NOW, agent, nothing, plain, retry};
use super::on_every_store;
use turnstone_domain::clock::ClockSteps;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{JobState, NewJob, Timestamp};
use turnstone_store::{Duty, JobKind, WorkerBeat};

on_every_store![
    a_step_forward_ends_no_lease,
    a_lease_that_is_extended_after_a_step_forward_ends_after_its_length,
    a_lease_between_two_steps_forward_ends_after_its_length,
    a_step_back_prolongs_no_lease,
    a_step_forward_ends_no_attempt,
    a_step_back_prolongs_no_attempt,
    an_attempt_ends_in_time_although_the_clock_says_that_it_is_not_due,
    a_step_back_prolongs_no_pause_before_a_retry,
    a_term_of_a_dead_leader_ends_after_a_step_back,
    a_worker_name_is_free_after_a_step_back,
];

const STEP_MS: i64 = 20 * 60_000;

/// Returns the time that a clock shows after its step, when this time has elapsed since [`NOW`].
fn stepped(by_ms: i64, elapsed_ms: i64) -> Timestamp {
    NOW.plus_ms(by_ms + elapsed_ms)
}

/// Steps the clock of the leader by this much, a millisecond after [`NOW`].
fn step(at: &Opened, by_ms: i64) {
    let steps = ClockSteps::default().and(stepped(by_ms, 1), stepped(by_ms, 1), by_ms);
    at.store.upkeep.follow(steps);
}

async fn a_step_forward_ends_no_lease(at: &Opened) {
    let held = at.held(None).await;
    step(at, STEP_MS);
    assert_eq!(at.perform(Duty::ReapExpired, stepped(STEP_MS, LEASE - 1)).await, 0);
    at.store.ledger.checkpoint(&held.lease, nothing(), stepped(STEP_MS, LEASE - 1), LEASE).await.unwrap();
    assert_eq!(at.state(&held.job).await, JobState::Active);
    let lost = at.held(None).await;
    // It began before the step, so it ends after its length of elapsed time.
    assert_eq!(at.perform(Duty::ReapExpired, stepped(STEP_MS, LEASE)).await, 1);
    assert_eq!(
        (at.state(&held.job).await, at.state(&lost.job).await),
        (JobState::Active, JobState::Available)
    );
}

async fn a_lease_that_is_extended_after_a_step_forward_ends_after_its_length(at: &Opened) {
    let held = at.held(None).await;
    step(at, STEP_MS);
    let leases = [held.lease];
    assert!(at.store.ledger.extend(&leases, stepped(STEP_MS, 1), LEASE).await.unwrap().is_empty());
    assert_eq!(at.perform(Duty::ReapExpired, stepped(STEP_MS, LEASE)).await, 0);
    assert_eq!(at.perform(Duty::ReapExpired, stepped(STEP_MS, LEASE + 1)).await, 1);
}

async fn a_lease_between_two_steps_forward_ends_after_its_length(at: &Opened) {
    let before = at.held(None).await;
    let between = at.held(None).await;
    let leases = [between.lease];
    assert!(at.store.ledger.extend(&leases, stepped(STEP_MS, 500), LEASE).await.unwrap().is_empty());
    let first = ClockSteps::default().and(stepped(STEP_MS, 1), stepped(STEP_MS, 1), STEP_MS);
    at.store.upkeep.follow(first.and(stepped(2 * STEP_MS, 501), stepped(2 * STEP_MS, 501), STEP_MS));
    let twice = |elapsed_ms| stepped(2 * STEP_MS, elapsed_ms);
    for (elapsed_ms, ended) in [(LEASE - 1, 0), (LEASE, 1), (LEASE + 499, 0), (LEASE + 500, 1)] {
        assert_eq!(at.perform(Duty::ReapExpired, twice(elapsed_ms)).await, ended, "{elapsed_ms}");
    }
    assert_eq!(at.state(&before.job).await, JobState::Available);
}

async fn a_step_back_prolongs_no_lease(at: &Opened) {
    let lost = at.held(None).await;
    // The leader need not have seen the step.
    let noticed = stepped(-STEP_MS, 2_000);
    assert_eq!(at.perform(Duty::BoundWaits, noticed).await, 1);
    assert_eq!(at.perform(Duty::BoundWaits, noticed).await, 0);
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(noticed.plus_ms(LEASE)));
    assert_eq!(at.perform(Duty::ReapExpired, noticed.plus_ms(LEASE - 1)).await, 0);
    assert_eq!(at.perform(Duty::ReapExpired, noticed.plus_ms(LEASE)).await, 1);
    assert_eq!(at.state(&lost.job).await, JobState::Available);
}

/// Returns a job whose attempts may take a minute, 5 seconds of grace included.
fn limited() -> NewJob {
    let retry = RetryPolicy { max_attempts: 2, jitter: false, ..RetryPolicy::default() };
    NewJob { timeout_ms: Some(55_000), retry, ..agent(None) }
}

async fn a_step_forward_ends_no_attempt(at: &Opened) {
    let id = at.push(limited()).await;
    at.claim(JobKind::Agent, 1).await;
    step(at, STEP_MS);
    assert_eq!(at.perform(Duty::TimeOutJobs, stepped(STEP_MS, 59_999)).await, 0);
    assert_eq!(at.perform(Duty::TimeOutJobs, stepped(STEP_MS, 60_000)).await, 1);
    assert_eq!(at.state(&id).await, JobState::Retryable);
}

async fn a_step_back_prolongs_no_attempt(at: &Opened) {
    let id = at.push(limited()).await;
    at.claim(JobKind::Agent, 1).await;
    step(at, -STEP_MS);
    assert_eq!(at.perform(Duty::TimeOutJobs, stepped(-STEP_MS, 59_999)).await, 0);
    assert_eq!(at.perform(Duty::TimeOutJobs, stepped(-STEP_MS, 60_000)).await, 1);
    assert_eq!(at.state(&id).await, JobState::Retryable);
}

/// The scheduler looks for timeouts when something is due, and by the clock nothing is.
async fn an_attempt_ends_in_time_although_the_clock_says_that_it_is_not_due(at: &Opened) {
    let id = at.push(limited()).await;
    at.claim(JobKind::Agent, 1).await;
    step(at, -STEP_MS);
    at.perform(Duty::BoundWaits, stepped(-STEP_MS, 59_999)).await;
    assert_eq!(at.state(&id).await, JobState::Active);
    at.perform(Duty::BoundWaits, stepped(-STEP_MS, 60_000)).await;
    assert_eq!(at.state(&id).await, JobState::Retryable);
}

async fn a_step_back_prolongs_no_pause_before_a_retry(at: &Opened) {
    let failed = at.push(plain(0)).await;
    let later = at.push(NewJob { run_at: LAPSED, ..plain(0) }).await;
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    at.settle(&held.lease, retry(NOW.plus_ms(1_000))).await;
    step(at, -STEP_MS);
    let noticed = stepped(-STEP_MS, 2_000);
    assert_eq!(at.perform(Duty::BoundWaits, noticed).await, 1);
    assert_eq!(at.perform(Duty::PromoteDue, noticed.plus_ms(999)).await, 0);
    assert_eq!(at.perform(Duty::PromoteDue, noticed.plus_ms(1_000)).await, 1);
    // A time that a client chose follows the clock.
    assert_eq!((at.state(&failed).await, at.state(&later).await), (JobState::Available, JobState::Scheduled));
}

async fn a_term_of_a_dead_leader_ends_after_a_step_back(at: &Opened) {
    lead(at, "dead", NOW).await.unwrap();
    assert_eq!(
        lead(at, "next", stepped(-2_000, 0)).await,
        None,
        "clocks that differ a little change nothing"
    );
    let next = lead(at, "next", stepped(-STEP_MS, 1_000)).await.unwrap();
    assert_eq!(next.expires_at, stepped(-STEP_MS, 1_000 + TERM_MS));
}

async fn a_worker_name_is_free_after_a_step_back(at: &Opened) {
    const SILENT: i64 = WorkerBeat::SILENT_MS;
    at.store.ledger.beat(beat("dead", NOW), SILENT).await.unwrap();
    at.store.ledger.beat(beat("next", stepped(-2_000, 0)), SILENT).await.unwrap_err();
    at.store.ledger.beat(beat("next", stepped(-STEP_MS, 1_000)), SILENT).await.unwrap();
}
