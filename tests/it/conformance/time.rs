//! The duties of time: due jobs, expired jobs, attempts that take too long.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, agent, complete, done, engagement, park, plain, reserve, retry};
use super::on_every_store;
use turnstone_domain::error::FailureKind;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{JobId, JobState, NewJob, Phase, Settlement, Timestamp};
use turnstone_store::{Duty, JobKind, Ring};

on_every_store![
    a_due_job_becomes_available_at_its_time,
    a_due_job_is_claimable_without_the_scheduler,
    due_jobs_keep_the_order_of_priority,
    a_job_that_expires_is_discarded_from_every_state,
    an_expired_job_is_not_claimed,
    an_attempt_that_takes_too_long_is_ended_after_its_grace,
    the_timeout_counts_from_the_latest_claim,
    the_longest_timeout_is_harmless,
    next_due_is_the_earliest_of_all,
];

fn later(ms: i64) -> NewJob {
    NewJob { run_at: NOW.plus_ms(ms), ..plain(0) }
}

async fn a_due_job_becomes_available_at_its_time(at: &Opened) {
    let scheduled = at.push(later(10)).await;
    at.push(plain(0)).await;
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    at.settle(&held.lease, retry(NOW.plus_ms(20))).await;
    let failed = at.job(&held.job).await;
    assert_eq!((failed.state, failed.failures, failed.retry_delay_ms), (JobState::Retryable, 1, Some(20)));
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(NOW.plus_ms(10)));
    assert_eq!(at.perform(Duty::PromoteDue, NOW.plus_ms(9)).await, 0);
    assert_eq!(at.perform(Duty::PromoteDue, NOW.plus_ms(10)).await, 1);
    assert_eq!(at.state(&scheduled).await, JobState::Available);
    assert_eq!(at.state(&held.job).await, JobState::Retryable);
    assert_eq!(at.perform(Duty::PromoteDue, NOW.plus_ms(20)).await, 1);
    assert_eq!(at.state(&held.job).await, JobState::Available);
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), None);
}

async fn a_due_job_is_claimable_without_the_scheduler(at: &Opened) {
    let scheduled = at.push(later(10)).await;
    at.push(agent(None)).await;
    let held = at.claim(JobKind::Agent, 1).await.remove(0);
    at.settle(&held.lease, retry(NOW.plus_ms(20))).await;
    assert!(at.claim_at(JobKind::Plain, 9, NOW.plus_ms(9)).await.is_empty());
    let claim = at.claim_at(JobKind::Plain, 9, NOW.plus_ms(10)).await;
    assert_eq!(claim.iter().map(|claim| &claim.job).collect::<Vec<_>>(), [&scheduled]);
    assert!(at.claim_at(JobKind::Agent, 9, NOW.plus_ms(19)).await.is_empty());
    let claim = at.claim_at(JobKind::Agent, 9, NOW.plus_ms(20)).await;
    assert_eq!(claim.iter().map(|claim| (&claim.job, claim.attempt)).collect::<Vec<_>>(), [(&held.job, 2)]);
    at.store.ledger.checkpoint(&claim[0].lease, done(Phase::Init), NOW, LEASE).await.unwrap();
}

async fn due_jobs_keep_the_order_of_priority(at: &Opened) {
    let low = at.push(plain(0)).await;
    let high = at.push(NewJob { priority: 9, ..later(10) }).await;
    let claim = at.claim_at(JobKind::Plain, 1, NOW.plus_ms(10)).await;
    assert_eq!(claim.iter().map(|claim| &claim.job).collect::<Vec<_>>(), [&high]);
    let claim = at.claim_at(JobKind::Plain, 1, NOW.plus_ms(10)).await;
    assert_eq!(claim.iter().map(|claim| &claim.job).collect::<Vec<_>>(), [&low]);
}

fn mortal(ms: i64) -> NewJob {
    NewJob { expires_at: Some(NOW.plus_ms(ms)), ..agent(Some(100)) }
}

/// Returns jobs that expire at 100 ms: one in each state that is not terminal.
async fn mortals(at: &Opened) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for end in [None, Some(park(None)), Some(retry(NOW.plus_ms(5))), Some(Settlement::Yield)] {
        jobs.push(at.push(mortal(100)).await);
        let held = at.claim(JobKind::Agent, 1).await.remove(0);
        at.store.ledger.checkpoint(&held.lease, reserve(60), NOW, LEASE).await.unwrap();
        if let Some(end) = end {
            at.settle(&held.lease, end).await;
        }
    }
    jobs.push(at.push(NewJob { run_at: NOW.plus_ms(50), ..mortal(100) }).await);
    jobs
}

async fn a_job_that_expires_is_discarded_from_every_state(at: &Opened) {
    let ended = at.push(mortal(100)).await;
    let held = at.claim(JobKind::Agent, 1).await.remove(0);
    at.settle(&held.lease, complete()).await;
    let jobs = mortals(at).await;
    let mut rings = at.store.doorbell.listen();
    for (now, expired) in [(99, 0), (100, 5), (200, 0)] {
        assert_eq!(at.perform(Duty::ExpireJobs, NOW.plus_ms(now)).await, expired);
    }
    let revoked = std::iter::from_fn(|| rings.try_recv().ok()).filter(|r| matches!(r, Ring::Revoked(_)));
    assert_eq!(revoked.count(), 1);
    for id in &jobs {
        let job = at.job(id).await;
        assert_eq!((job.state, job.ended_at), (JobState::Discarded, Some(NOW.plus_ms(100))));
        assert_eq!(job.errors.last().unwrap().error.kind, FailureKind::Expired);
    }
    assert_eq!(at.state(&ended).await, JobState::Completed);
    assert_eq!(at.query("SELECT CAST(sum(reserved) AS BIGINT) FROM totals").await, 0);
    assert_eq!(at.query("SELECT count(*) FROM reviews WHERE state = 'open'").await, 0);
}

async fn an_expired_job_is_not_claimed(at: &Opened) {
    at.push(mortal(10)).await;
    assert!(at.claim_at(JobKind::Agent, 1, NOW.plus_ms(10)).await.is_empty());
    assert_eq!(at.claim_at(JobKind::Agent, 1, NOW.plus_ms(9)).await.len(), 1);
}

fn hasty(max_attempts: u32) -> NewJob {
    let retry = RetryPolicy { max_attempts, jitter: false, ..RetryPolicy::default() };
    NewJob { timeout_ms: Some(1_000), retry, ..agent(Some(100)) }
}

/// The time at which the scheduler ends an attempt of [`hasty`] that began at [`NOW`].
const LATE: Timestamp = Timestamp(NOW.0 + 6_000);

async fn an_attempt_that_takes_too_long_is_ended_after_its_grace(at: &Opened) {
    for job in [hasty(1), hasty(3), agent(None)] {
        at.push(job).await;
    }
    let claims = at.claim(JobKind::Agent, 3).await;
    for claim in &claims {
        // Each checkpoint extends the lease.
        at.store.ledger.checkpoint(&claim.lease, reserve(50), NOW, 1_000_000).await.unwrap();
    }
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(LATE));
    for (now, ended) in [(LATE.plus_ms(-1), 0), (LATE, 2), (LATE, 0)] {
        assert_eq!(at.perform(Duty::TimeOutJobs, now).await, ended);
    }
    let last = at.job(&claims[0].job).await;
    assert_eq!((last.state, last.failures, last.ended_at), (JobState::Discarded, 1, Some(LATE)));
    assert_eq!(last.errors[0].error.kind, FailureKind::Timeout);
    let first = at.job(&claims[1].job).await;
    assert_eq!((first.state, first.failures, first.run_at), (JobState::Retryable, 1, LATE.plus_ms(1_000)));
    assert_eq!(at.state(&claims[2].job).await, JobState::Active);
    assert_eq!(at.store.views.budget(&engagement(&claims[0])).await.unwrap().reserved, 0);
    let leases: Vec<_> = claims.iter().map(|claim| claim.lease.clone()).collect();
    assert_eq!(at.store.ledger.reads().lost(&leases).await.unwrap().len(), 2);
}

async fn the_timeout_counts_from_the_latest_claim(at: &Opened) {
    let id = at.push(hasty(3)).await;
    let held = at.claim(JobKind::Agent, 1).await.remove(0);
    at.store.ledger.release(&[held.lease], NOW).await.unwrap();
    assert_eq!(at.claim_at(JobKind::Agent, 1, NOW.plus_ms(500)).await.len(), 1);
    assert_eq!(at.perform(Duty::TimeOutJobs, LATE).await, 0);
    assert_eq!(at.perform(Duty::TimeOutJobs, LATE.plus_ms(500)).await, 1);
    assert_eq!(at.state(&id).await, JobState::Retryable);
}

async fn the_longest_timeout_is_harmless(at: &Opened) {
    let patient = at.push(NewJob { timeout_ms: Some(i64::MAX), ..agent(None) }).await;
    at.push(hasty(3)).await;
    assert_eq!(at.claim(JobKind::Agent, 2).await.len(), 2);
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(LATE));
    assert_eq!(at.perform(Duty::TimeOutJobs, LATE).await, 1);
    assert_eq!(at.state(&patient).await, JobState::Active);
}

async fn next_due_is_the_earliest_of_all(at: &Opened) {
    let due = || async { at.store.upkeep.next_due().await.unwrap().map(|due| due.since(NOW)) };
    assert_eq!(due().await, None);
    at.push(NewJob { expires_at: Some(NOW.plus_ms(90_000)), ..plain(0) }).await;
    assert_eq!(due().await, Some(90_000));
    at.push(later(80_000)).await;
    assert_eq!(due().await, Some(80_000));
    let held = at.held(None).await;
    at.settle(&held.lease, park(Some(NOW.plus_ms(70_000)))).await;
    assert_eq!(due().await, Some(70_000));
    let held = at.held(None).await;
    assert_eq!(due().await, Some(LEASE));
    at.settle(&held.lease, retry(NOW.plus_ms(60_000))).await;
    assert_eq!(due().await, Some(60_000));
    at.push(hasty(1)).await;
    at.claim(JobKind::Agent, 1).await;
    assert_eq!(due().await, Some(6_000));
}
