//! Paused queues and bounded queues.

use super::backend::Opened;
use super::jobs::{NOW, complete, plain, retry};
use super::on_every_store;
use futures::future::join_all;
use turnstone_domain::{JobId, JobState, NewJob};
use turnstone_store::{ConfigChange, JobKind, Pressure, QueueLimits, Ring, StoreError};

on_every_store![
    a_paused_queue_is_passed_over_and_keeps_its_order,
    pausing_is_one_event_of_the_queue,
    a_job_takes_its_number_after_an_event_that_belongs_to_no_job,
    a_full_queue_refuses_a_push_whole_and_other_queues_accept,
    waiting_jobs_count_and_running_or_ended_ones_do_not,
    concurrent_pushes_do_not_pass_the_bound_together,
    a_bound_of_another_process_holds_for_the_next_push,
    the_bound_of_bytes_counts_stored_bytes,
    a_filling_queue_warns_its_clients,
    settings_are_merged_and_numbered,
];

fn named(queue: &str) -> NewJob {
    NewJob { queue: queue.into(), ..plain(0) }
}

/// Sets the bounds of a queue.
async fn bound(at: &Opened, queue: &str, limits: QueueLimits) {
    let change = ConfigChange { limits: Some(limits), ..ConfigChange::default() };
    at.store.queues.configure(queue, change, NOW).await.unwrap();
}

async fn a_paused_queue_is_passed_over_and_keeps_its_order(at: &Opened) {
    let first = at.push(named("a.b")).await;
    assert!(at.store.queues.pause("a.b", true, NOW).await.unwrap());
    let second = at.push(named("a.b")).await;
    let elsewhere = at.push(named("c")).await;
    let ids = |claims: Vec<turnstone_store::Claim>| claims.into_iter().map(|c| c.job).collect::<Vec<JobId>>();
    assert_eq!(ids(at.claim(JobKind::Plain, 9).await), [elsewhere]);
    assert!(at.store.queues.queue("a.b").await.unwrap().unwrap().paused);
    let mut rings = at.store.doorbell.listen();
    assert!(at.store.queues.pause("a.b", false, NOW).await.unwrap());
    assert!(std::iter::from_fn(|| rings.try_recv().ok()).any(|ring| ring == Ring::Available));
    assert_eq!(ids(at.claim(JobKind::Plain, 9).await), [first, second]);
}

async fn pausing_is_one_event_of_the_queue(at: &Opened) {
    for (paused, changes) in [(true, true), (true, false), (false, true), (false, false)] {
        assert_eq!(at.store.queues.pause("new", paused, NOW).await.unwrap(), changes);
    }
    let reported = "SELECT count(*) FROM journal WHERE names IN ('queue.paused', 'queue.resumed') AND last_event = 1 \
                AND (body = '[{\"event\":{\"data\":{\"queue\":\"new\",\"subject\":\"new\"}}}]' OR body LIKE 'sealed:1:%')";
    assert_eq!(at.query(reported).await, 2);
    assert_eq!(at.query("SELECT count(DISTINCT stream) FROM journal").await, 2);
}

async fn a_job_takes_its_number_after_an_event_that_belongs_to_no_job(at: &Opened) {
    at.push(plain(0)).await;
    at.store.queues.pause("q", true, NOW).await.unwrap();
    let job = at.push(plain(0)).await;
    at.store.queues.pause("q", false, NOW).await.unwrap();
    assert_eq!(at.events(&job).await.len(), 1);
    assert_eq!(at.query("SELECT count(DISTINCT stream) FROM journal").await, 4);
}

async fn a_full_queue_refuses_a_push_whole_and_other_queues_accept(at: &Opened) {
    bound(at, "small", QueueLimits { max_depth: Some(3), ..QueueLimits::default() }).await;
    at.store.intake.push(vec![named("small"), named("small")]).await.unwrap();
    let refused = at.store.intake.push(vec![named("big"), named("small"), named("small")]).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::QueueFull { queue, depth: 2, bound: 3 } if queue == "small"),
        "{refused}"
    );
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 2);
    at.push(named("small")).await;
    at.push(named("big")).await;
    assert!(at.store.intake.push(vec![named("small")]).await.is_err());
    // Each push of one commit is checked by itself.
    let pushes = [vec![named("big")], vec![named("small")], vec![named("big")]];
    let done = join_all(pushes.map(|jobs| at.store.intake.push(jobs))).await;
    assert_eq!(done.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
}

async fn waiting_jobs_count_and_running_or_ended_ones_do_not(at: &Opened) {
    bound(at, "q", QueueLimits { max_depth: Some(2), ..QueueLimits::default() }).await;
    at.push(NewJob { run_at: NOW.plus_ms(5), ..plain(0) }).await;
    at.push(plain(0)).await;
    assert!(at.store.intake.push(vec![plain(0)]).await.is_err(), "one is scheduled, one available");
    let held = at.claim(JobKind::Plain, 1).await.remove(0);
    at.push(plain(0)).await;
    at.settle(&held.lease, retry(NOW.plus_ms(9))).await;
    assert_eq!(at.state(&held.job).await, JobState::Retryable);
    let refused = at.store.intake.push(vec![plain(0)]).await.unwrap_err();
    assert!(matches!(refused, StoreError::QueueFull { depth: 3, bound: 2, .. }), "a retry is never refused");
    for claim in at.claim_at(JobKind::Plain, 9, NOW.plus_ms(9)).await {
        at.settle(&claim.lease, complete()).await;
    }
    at.push(plain(0)).await;
}

async fn concurrent_pushes_do_not_pass_the_bound_together(at: &Opened) {
    bound(at, "q", QueueLimits { max_depth: Some(10), ..QueueLimits::default() }).await;
    let other = at.place.open().await;
    let pushes = (0..40).map(|n| {
        let intake = if n % 2 == 0 { &at.store.intake } else { &other.intake };
        intake.push(vec![plain(0)])
    });
    let done = join_all(pushes).await;
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 10);
    assert_eq!(at.query("SELECT count(*) FROM jobs").await, 10);
}

async fn a_bound_of_another_process_holds_for_the_next_push(at: &Opened) {
    at.push(plain(0)).await;
    let other = at.place.open().await;
    let limits = |max_depth| ConfigChange {
        limits: Some(QueueLimits { max_depth, ..QueueLimits::default() }),
        ..ConfigChange::default()
    };
    for _ in 0..2 {
        other.queues.configure("q", limits(Some(1)), NOW).await.unwrap();
        let refused = at.store.intake.push(vec![plain(0)]).await.unwrap_err();
        assert!(matches!(refused, StoreError::QueueFull { .. }), "{refused}");
        other.queues.configure("q", limits(Some(9)), NOW).await.unwrap();
        at.push(plain(0)).await;
        let last = "UPDATE jobs SET state = 'completed', ended_at = 1 WHERE seq = (SELECT max(seq) FROM jobs) \
                    RETURNING CAST(1 AS BIGINT)";
        assert_eq!(at.query(last).await, 1);
    }
}

async fn the_bound_of_bytes_counts_stored_bytes(at: &Opened) {
    at.push(plain(0)).await;
    let stored = at
        .query("SELECT CAST(sum(length(args) + length(meta) + length(options) + length(extra)) AS BIGINT) FROM job_envelopes")
        .await;
    bound(at, "q", QueueLimits { max_bytes: Some(stored * 3), ..QueueLimits::default() }).await;
    at.push(plain(0)).await;
    assert!(at.store.intake.push(vec![plain(0), plain(0)]).await.is_err());
    at.push(plain(0)).await;
    assert!(at.store.intake.push(vec![plain(0)]).await.is_err());
}

async fn a_filling_queue_warns_its_clients(at: &Opened) {
    let limits = QueueLimits { max_depth: Some(4), warn_at: Some(2), ..QueueLimits::default() };
    bound(at, "q", limits).await;
    let mut reported = Vec::new();
    for _ in 0..3 {
        reported.push(at.store.intake.push(vec![plain(0)]).await.unwrap().remove(0).pressure);
    }
    let pressure = |depth| Some(Pressure { depth, bound: Some(4) });
    assert_eq!(reported, [None, pressure(2), pressure(3)]);
    let elsewhere = at.store.intake.push(vec![named("x")]).await.unwrap().remove(0);
    assert_eq!(elsewhere.pressure, None);
}

async fn settings_are_merged_and_numbered(at: &Opened) {
    let queues = &at.store.queues;
    let members = |text: &str| serde_json::from_str(text).unwrap();
    let limits = QueueLimits { concurrency: Some(2), ..QueueLimits::default() };
    let change = ConfigChange { members: members(r#"{"concurrency": 2}"#), limits: Some(limits.clone()) };
    assert!(queues.configure("a", change, NOW).await.unwrap());
    let change = ConfigChange { members: members(r#"{"attest_policy": {"required": false}}"#), limits: None };
    assert!(!queues.configure("a", change, NOW).await.unwrap());
    let queue = queues.queue("a").await.unwrap().unwrap();
    assert_eq!(queue.limits, limits);
    assert_eq!(queue.config, members(r#"{"concurrency": 2, "attest_policy": {"required": false}}"#));
    let change =
        ConfigChange { members: members(r#"{"concurrency": null}"#), limits: Some(QueueLimits::default()) };
    queues.configure("a", change, NOW).await.unwrap();
    let queue = queues.queue("a").await.unwrap().unwrap();
    assert_eq!((queue.limits, queue.config.len()), (QueueLimits::default(), 1));
    at.push(named("a")).await;
    let counts = queues.counts(&["a".into(), "nobody".into()], None).await.unwrap();
    assert_eq!(counts, [("a".to_owned(), JobState::Available, 1)]);
    assert!(queues.counts(&["a".into()], Some("x")).await.unwrap().is_empty());
}
