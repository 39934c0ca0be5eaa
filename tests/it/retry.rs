//! Failures follow the OJS retry policy; time moves by hand.

use crate::program::run;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply};

fn job(retry: &Value) -> Value {
    json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "options": {"retry": retry}})
}

#[tokio::test]
async fn failures_follow_the_retry_policy() {
    let fleet = Fleet::builder().model(|_| Reply::Status(503)).start().await;
    let retry =
        json!({"max_attempts": 3, "initial_interval": "PT10S", "backoff_coefficient": 3.0, "jitter": false});
    let id = fleet.push(&job(&retry)).await;
    for (failures, delay) in [(1, 10_000), (2, 30_000)] {
        let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
        assert_eq!(waiting["errors"].as_array().unwrap().len(), failures);
        assert_eq!(waiting["error"]["code"], "AGENT_MODEL_UNAVAILABLE");
        assert_eq!(waiting["retry_delay_ms"], delay);
        fleet.clock.advance_ms(delay - 1);
        fleet.tick().await;
        assert_eq!(fleet.job(&id).await["state"], "retryable", "one millisecond early");
        fleet.clock.advance_ms(1);
        fleet.tick().await;
        // The next state is the next failure, not this one.
        fleet.models.seen(failures + 1).await;
    }
    let done = fleet.wait_for(&id, &[JobState::Discarded]).await;
    assert_eq!(done["attempt"], 3);
    assert_eq!(done["errors"].as_array().unwrap().len(), 3);
    fleet.end().await;
}

/// Issue 16: a policy with three attempts makes three, although three is the default and the provider is unreachable.
#[tokio::test]
async fn a_stated_policy_applies_also_when_it_equals_the_default() {
    for backend in Backend::ALL {
        let fleet = Fleet::builder().on(backend).model(|_| Reply::Status(503)).start().await;
        let id = fleet.push(&job(&json!({"max_attempts": 3}))).await;
        for failures in 1..=2 {
            fleet.models.seen(failures).await;
            let waiting = fleet.wait_for(&id, &[JobState::Retryable]).await;
            assert_eq!(waiting["errors"].as_array().unwrap().len(), failures, "{waiting:#}");
            assert_eq!(waiting["retry"]["stated"], Value::Null, "the mark is internal: {waiting:#}");
            fleet.clock.advance_ms(5_000);
            fleet.tick().await;
        }
        let done = fleet.wait_for(&id, &[JobState::Discarded]).await;
        assert_eq!((fleet.models.count(), &done["attempt"]), (3, &json!(3)), "{done:#}");
        assert_eq!(failures_told(&fleet, &id).await, "3 of 3");
        fleet.end().await;
    }
}

/// Issue 16: a job without a policy lists failures of an outage apart from those that count against `max_attempts`.
#[tokio::test]
async fn failures_in_an_outage_are_listed_apart() {
    let fleet = Fleet::builder().model(|_| Reply::Status(503)).start().await;
    let id = fleet.push(&job(&json!({}))).await;
    for failures in 1..=4 {
        fleet.models.seen(failures).await;
        fleet.wait_for(&id, &[JobState::Retryable]).await;
        if failures < 4 {
            fleet.clock.advance_ms(20_000);
            fleet.tick().await;
        }
    }
    assert_eq!(failures_told(&fleet, &id).await, "0 of 3, and 4 of 25 in an outage");
    fleet.end().await;
}

/// Returns the line `failures` of `turnstone job get`.
async fn failures_told(fleet: &Fleet, id: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["job", "get", id, "--url", &fleet.url], &[]).await;
    let line = ran.stdout.lines().find_map(|line| line.strip_prefix("failures"));
    line.unwrap_or_else(|| panic!("{ran:?}")).trim().to_owned()
}

#[tokio::test]
async fn a_later_attempt_may_succeed() {
    let tries = AtomicUsize::new(0);
    let fleet =
        Fleet::builder()
            .model(move |_| {
                if tries.fetch_add(1, Ordering::SeqCst) == 0 { Reply::Status(500) } else { Reply::text("ok") }
            })
            .start()
            .await;
    let id = fleet.push(&job(&json!({"initial_interval": "PT1S"}))).await;
    fleet.wait_for(&id, &[JobState::Retryable]).await;
    fleet.clock.advance_ms(3_000);
    fleet.tick().await;
    let done = fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!((&done["result"], &done["attempt"]), (&json!("ok"), &json!(2)));
    fleet.end().await;
}

#[tokio::test]
async fn errors_of_the_list_are_not_retried() {
    let fleet = Fleet::builder().model(|_| Reply::Status(503)).start().await;
    let id = fleet.push(&job(&json!({"non_retryable_errors": ["AGENT_MODEL_UNAVAILABLE"]}))).await;
    let done = fleet.settled(&id).await;
    assert_eq!((&done["state"], &done["attempt"]), (&json!("discarded"), &json!(1)));
    fleet.end().await;
}

#[tokio::test]
async fn a_job_that_is_too_slow_fails_with_a_timeout() {
    let fleet = Fleet::builder().model(|_| Reply::Hang).start().await;
    let mut job = job(&json!({"max_attempts": 1}));
    job["options"]["timeout_ms"] = json!(300);
    let id = fleet.push(&job).await;
    let done = fleet.settled(&id).await;
    assert_eq!((&done["state"], &done["error"]["code"]), (&json!("discarded"), &json!("TIMEOUT")));
    fleet.end().await;
}

#[tokio::test]
async fn a_scheduled_job_waits_for_its_time_and_an_expired_one_never_runs() {
    let fleet = Fleet::builder().start().await;
    let mut later = job(&json!({}));
    later["options"]["delay_until"] = json!("+PT60S");
    let id = fleet.push(&later).await;
    assert_eq!(fleet.job(&id).await["state"], "scheduled");
    let mut stale = later.clone();
    stale["options"]["expires_at"] = json!("+PT30S");
    let stale = fleet.push(&stale).await;
    fleet.clock.advance_ms(30_000);
    fleet.tick().await;
    assert_eq!(fleet.job(&stale).await["state"], "discarded");
    assert!(fleet.job(&stale).await["completed_at"].is_null());
    fleet.clock.advance_ms(30_000);
    fleet.tick().await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    assert_eq!(fleet.models.calls().len(), 1);
    fleet.end().await;
}
