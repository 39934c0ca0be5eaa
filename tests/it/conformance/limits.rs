//! Limits of queues and limits of jobs: never exceeded, isolated from other jobs, and released at the earliest time.

use super::backend::Opened;
use super::jobs::{LEASE, NOW, complete, plain, request};
use super::on_every_store;
use futures::future::join_all;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use turnstone_domain::error::FailureKind;
use turnstone_domain::terms::{OnLimit, Rate, RateLimit};
use turnstone_domain::{EventName, JobId, JobState, NewJob, Terms, Timestamp};
use turnstone_store::{Claim, ConfigChange, Duty, JobKind, QueueLimits, Ring, Store};
use turnstone_tests::wait;

on_every_store![
    a_queue_runs_no_more_than_its_concurrency,
    a_queue_starts_no_more_than_its_rate,
    a_job_may_set_the_rate_of_its_queue_unless_an_operator_has,
    a_key_runs_no_more_than_its_concurrency_and_keys_are_independent,
    a_job_that_ends_wakes_the_next_one,
    a_window_that_opens_notifies_workers_once,
    a_throttle_keeps_starts_apart,
    jobs_of_one_limit_start_in_their_order,
    a_lapsed_lease_and_a_cancellation_make_room,
    ten_thousand_jobs_that_wait_for_a_limit_are_read_once,
    several_processes_do_not_exceed_a_limit_together,
    a_job_may_ask_for_a_later_time,
    a_job_may_ask_to_be_dropped,
    an_operator_may_override_a_limit_and_undo_it,
];

fn named(key: &str, limit: RateLimit) -> NewJob {
    let limit = RateLimit { key: Some(key.to_owned()), ..limit };
    NewJob { terms: Terms { rate_limit: Some(limit), ..Terms::default() }, ..plain(0) }
}

fn concurrency(most: i64) -> RateLimit {
    RateLimit { concurrency: Some(most), ..RateLimit::default() }
}

fn rate(limit: i64, period_ms: i64) -> RateLimit {
    RateLimit { rate: Some(Rate { limit, period_ms }), ..RateLimit::default() }
}

async fn limit_queue(at: &Opened, limits: QueueLimits) {
    let members = [("concurrency".to_owned(), 1.into())].into_iter().collect();
    at.store.queues.configure("q", ConfigChange { members, limits: Some(limits) }, NOW).await.unwrap();
}

async fn claimed(at: &Opened, now: Timestamp) -> Vec<JobId> {
    at.claim_at(JobKind::Plain, 9, now).await.into_iter().map(|claim| claim.job).collect()
}

/// Returns true when waiting workers were notified.
fn rang(rings: &mut tokio::sync::broadcast::Receiver<Ring>) -> bool {
    std::iter::from_fn(|| rings.try_recv().ok()).any(|ring| ring == Ring::Available)
}

async fn a_queue_runs_no_more_than_its_concurrency(at: &Opened) {
    limit_queue(at, QueueLimits { concurrency: Some(2), ..QueueLimits::default() }).await;
    at.store.intake.push((0..5).map(|_| plain(0)).collect()).await.unwrap();
    let held = at.claim(JobKind::Plain, 9).await;
    assert_eq!(held.len(), 2);
    assert!(at.claim(JobKind::Plain, 9).await.is_empty());
    let mut rings = at.store.doorbell.listen();
    at.settle(&held[0].lease, complete()).await;
    assert!(rang(&mut rings), "the next one may start");
    assert_eq!(at.claim(JobKind::Plain, 9).await.len(), 1);
    assert!(at.claim(JobKind::Plain, 9).await.is_empty());
}

async fn a_queue_starts_no_more_than_its_rate(at: &Opened) {
    let rate = Some(Rate { limit: 2, period_ms: 1_000 });
    limit_queue(at, QueueLimits { rate, ..QueueLimits::default() }).await;
    at.store.intake.push((0..9).map(|_| plain(0)).collect()).await.unwrap();
    let counts = [(0, 2), (999, 0), (1_000, 2), (1_500, 0), (9_000, 2)];
    for (ms, expected) in counts {
        assert_eq!(claimed(at, NOW.plus_ms(ms)).await.len(), expected, "after {ms} ms");
    }
}

async fn a_job_may_set_the_rate_of_its_queue_unless_an_operator_has(at: &Opened) {
    let slow = |limit| {
        let rate_limit = Some(rate(limit, 1_000));
        NewJob { terms: Terms { rate_limit, ..Terms::default() }, ..plain(0) }
    };
    at.store.intake.push((0..4).map(|_| slow(1)).collect()).await.unwrap();
    assert_eq!(claimed(at, NOW).await.len(), 1);
    assert_eq!(claimed(at, NOW).await.len(), 0);
    assert_eq!(claimed(at, NOW.plus_ms(1_000)).await.len(), 1);
    limit_queue(at, QueueLimits { concurrency: Some(9), ..QueueLimits::default() }).await;
    at.push(slow(1)).await;
    assert_eq!(claimed(at, NOW.plus_ms(1_001)).await.len(), 3);
}

async fn a_key_runs_no_more_than_its_concurrency_and_keys_are_independent(at: &Opened) {
    let jobs = ["a", "a", "a", "b", "b"].map(|key| named(key, concurrency(1)));
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    at.store.intake.push(jobs.to_vec()).await.unwrap();
    let free = at.push(plain(0)).await;
    let elsewhere = at.push(NewJob { queue: "z".into(), ..named("a", concurrency(1)) }).await;
    assert_eq!(claimed(at, NOW).await, [ids[0].clone(), ids[3].clone(), free]);
    assert!(claimed(at, NOW).await.is_empty());
    for waiting in [&ids[1], &ids[4], &elsewhere] {
        assert_eq!(at.state(waiting).await, JobState::Available);
    }
    let limit = at.store.queues.limit(None, "a").await.unwrap().unwrap();
    assert_eq!((limit.concurrency, limit.active, limit.waiting), (Some(1), 1, 3));
    assert!(at.store.queues.limit(None, "c").await.unwrap().is_none());
}

async fn a_job_that_ends_wakes_the_next_one(at: &Opened) {
    let jobs: Vec<NewJob> = (0..3).map(|_| named("a", concurrency(1))).collect();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    at.store.intake.push(jobs).await.unwrap();
    for id in &ids {
        let held = at.claim(JobKind::Plain, 9).await;
        assert_eq!(held.iter().map(|claim| &claim.job).collect::<Vec<_>>(), [id]);
        assert!(at.claim(JobKind::Plain, 9).await.is_empty());
        let mut rings = at.store.doorbell.listen();
        at.settle(&held[0].lease, complete()).await;
        assert!(rang(&mut rings));
    }
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), None, "no job waits for a time");
}

async fn a_window_that_opens_notifies_workers_once(at: &Opened) {
    at.store.intake.push((0..4).map(|_| named("a", rate(2, 1_000))).collect()).await.unwrap();
    assert_eq!(claimed(at, NOW).await.len(), 2);
    assert!(claimed(at, NOW.plus_ms(10)).await.is_empty());
    let opens = NOW.plus_ms(1_000);
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(opens));
    let mut rings = at.store.doorbell.listen();
    for (now, reported) in [(opens.plus_ms(-1), false), (opens, true), (opens, false)] {
        at.perform(Duty::PromoteDue, now).await;
        assert_eq!(rang(&mut rings), reported);
    }
    assert_eq!(claimed(at, opens).await.len(), 2);
}

async fn a_throttle_keeps_starts_apart(at: &Opened) {
    let limit = || RateLimit { throttle_ms: Some(300), ..RateLimit::default() };
    at.store.intake.push((0..4).map(|_| named("a", limit())).collect()).await.unwrap();
    for (ms, expected) in [(0, 1), (299, 0), (300, 1), (599, 0), (1_000, 1), (1_299, 0), (1_300, 1)] {
        assert_eq!(claimed(at, NOW.plus_ms(ms)).await.len(), expected, "after {ms} ms");
    }
}

async fn jobs_of_one_limit_start_in_their_order(at: &Opened) {
    let first = at.push(named("a", concurrency(1))).await;
    let second = at.push(named("a", concurrency(1))).await;
    let held = at.claim(JobKind::Plain, 9).await.remove(0);
    assert_eq!(held.job, first);
    assert!(at.claim(JobKind::Plain, 9).await.is_empty());
    // The second one waits for its limit. A later job does not overtake it, unless it is more urgent.
    let third = at.push(named("a", concurrency(1))).await;
    let urgent = at.push(NewJob { priority: 9, ..named("a", concurrency(1)) }).await;
    let mut held = held;
    for expected in [urgent, second, third] {
        at.settle(&held.lease, complete()).await;
        held = at.claim(JobKind::Plain, 9).await.remove(0);
        assert_eq!(held.job, expected);
    }
}

async fn a_lapsed_lease_and_a_cancellation_make_room(at: &Opened) {
    let first = at.push(named("a", concurrency(1))).await;
    let second = at.push(named("a", concurrency(1))).await;
    assert_eq!(claimed(at, NOW).await, std::slice::from_ref(&first));
    assert!(claimed(at, NOW).await.is_empty());
    at.store.intake.cancel(&first, NOW).await.unwrap();
    assert_eq!(claimed(at, NOW).await, std::slice::from_ref(&second));
    assert_eq!(at.perform(Duty::ReapExpired, NOW.plus_ms(LEASE)).await, 1);
    assert_eq!(claimed(at, NOW.plus_ms(LEASE)).await, [second]);
}

async fn ten_thousand_jobs_that_wait_for_a_limit_are_read_once(at: &Opened) {
    for _ in 0..10 {
        at.store.intake.push((0..1_000).map(|_| named("a", concurrency(1))).collect()).await.unwrap();
    }
    let free: Vec<JobId> = (0..3).map(|_| plain(0)).map(|job| job.id).collect();
    let jobs = free.iter().map(|id| NewJob { id: id.clone(), ..plain(0) }).collect();
    at.store.intake.push(jobs).await.unwrap();
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    for id in &free {
        let next = at.claim(JobKind::Plain, 1).await;
        assert_eq!(next.iter().map(|claim| &claim.job).collect::<Vec<_>>(), [id]);
    }
    assert!(at.claim(JobKind::Plain, 1).await.is_empty());
    assert_eq!(at.query("SELECT count(*) FROM jobs WHERE set_aside = 1").await, 9_999);
    at.settle(&held.lease, complete()).await;
    assert_eq!(at.claim(JobKind::Plain, 5).await.len(), 1);
    assert_eq!(at.query("SELECT count(*) FROM jobs WHERE set_aside = 1").await, 9_998);
}

async fn several_processes_do_not_exceed_a_limit_together(at: &Opened) {
    const JOBS: usize = 60;
    let jobs = (0..JOBS).map(|n| {
        let key = if n % 3 == 0 { "b" } else { "a" };
        NewJob { job_type: key.into(), ..named(key, concurrency(2)) }
    });
    at.store.intake.push(jobs.collect()).await.unwrap();
    let other = at.place.open().await;
    let (running, done) = ([AtomicI64::new(0), AtomicI64::new(0)], AtomicUsize::new(0));
    let work = |store: Store, worker: usize| {
        let (running, done) = (&running, &done);
        async move {
            while done.load(Ordering::SeqCst) < JOBS {
                let limit = 1 + worker % 3;
                let claims = store.ledger.claim(request(JobKind::Plain, limit, NOW)).await.unwrap();
                let keys: Vec<usize> = claims.iter().map(key_of).collect();
                for key in &keys {
                    let now = running[*key].fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(now <= 2, "{now} run");
                }
                tokio::task::yield_now().await;
                for (claim, key) in claims.iter().zip(keys) {
                    running[key].fetch_sub(1, Ordering::SeqCst);
                    let nothing = turnstone_domain::TurnWrite::default();
                    store.ledger.settle(&claim.lease, nothing, complete(), NOW).await.unwrap();
                    done.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    };
    let stores = (0..8).map(|n| work(if n % 2 == 0 { at.store.clone() } else { other.clone() }, n));
    wait::output("every job is completed", join_all(stores)).await;
    assert_eq!(at.query("SELECT count(*) FROM jobs WHERE state = 'completed'").await, 60);
}

/// Returns the index of the limit that a job names.
fn key_of(claim: &Claim) -> usize {
    usize::from(claim.job_type == "b")
}

async fn a_job_may_ask_for_a_later_time(at: &Opened) {
    let later = || RateLimit { on_limit: OnLimit::Reschedule, ..rate(1, 1_000) };
    let jobs: Vec<NewJob> = (0..3).map(|_| named("a", later())).collect();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
    at.store.intake.push(jobs).await.unwrap();
    assert_eq!(claimed(at, NOW).await, [ids[0].clone()]);
    let (second, third) = (at.job(&ids[1]).await, at.job(&ids[2]).await);
    assert_eq!((second.state, second.run_at), (JobState::Scheduled, NOW.plus_ms(1_000)));
    assert_eq!((third.state, third.run_at), (JobState::Scheduled, NOW.plus_ms(2_000)));
    assert_eq!(at.events(&ids[1]).await.last(), Some(&EventName::JobRescheduled));
    assert_eq!(claimed(at, NOW.plus_ms(1_000)).await, [ids[1].clone()]);
    assert_eq!(claimed(at, NOW.plus_ms(2_000)).await, [ids[2].clone()]);
}

async fn a_job_may_ask_to_be_dropped(at: &Opened) {
    let never = || RateLimit { on_limit: OnLimit::Drop, ..concurrency(1) };
    at.push(named("a", never())).await;
    let second = at.push(named("a", never())).await;
    let patient = at.push(named("a", concurrency(1))).await;
    assert_eq!(claimed(at, NOW).await.len(), 1);
    let job = at.job(&second).await;
    assert_eq!((job.state, job.ended_at), (JobState::Discarded, Some(NOW)));
    assert_eq!(job.errors[0].error.kind, FailureKind::RateLimited);
    assert_eq!(at.events(&second).await.last(), Some(&EventName::JobDiscarded));
    assert_eq!(at.state(&patient).await, JobState::Available);
}

async fn an_operator_may_override_a_limit_and_undo_it(at: &Opened) {
    let queues = &at.store.queues;
    at.store.intake.push((0..6).map(|_| named("a", concurrency(1))).collect()).await.unwrap();
    assert_eq!(claimed(at, NOW).await.len(), 1);
    assert!(queues.override_limit(None, "a", Some(concurrency(3))).await.unwrap());
    at.push(named("a", concurrency(1))).await;
    assert_eq!(claimed(at, NOW).await.len(), 2);
    assert!(queues.limit(None, "a").await.unwrap().unwrap().overridden);
    assert!(queues.override_limit(None, "a", None).await.unwrap());
    let limit = queues.limit(None, "a").await.unwrap().unwrap();
    assert_eq!((limit.overridden, limit.concurrency, limit.active), (false, Some(1), 3));
    assert!(claimed(at, NOW).await.is_empty());
    assert!(!queues.override_limit(None, "a", None).await.unwrap());
    assert!(!queues.override_limit(None, "b", Some(concurrency(1))).await.unwrap(), "it is new");
}
