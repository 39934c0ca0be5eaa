//! Workers that wait for a limit hold nothing but a slot.

use super::Shared;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use turnstone_domain::{Clock, JobState, Timestamp};
use turnstone_store::limits::{LocalLimits, RateLimits};
use turnstone_tests::clock::ManualClock;
use turnstone_tests::{Fleet, Reply};
use turnstone_worker::model::{LimitConfig, ModelLimits};

/// The times of the model calls, by the fleet's clock.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<(Option<ManualClock>, Vec<Timestamp>)>>);

impl Calls {
    fn note(&self) {
        let mut kept = self.0.lock().unwrap();
        let now = kept.0.as_ref().expect("the clock is known before the first job").now();
        kept.1.push(now);
    }

    /// Returns the number of calls at each time, in seconds since the first.
    fn by_second(&self) -> Vec<(i64, usize)> {
        let calls = self.0.lock().unwrap().1.clone();
        let mut counted = BTreeMap::new();
        for call in &calls {
            *counted.entry(call.since(calls[0]) / 1_000).or_default() += 1;
        }
        counted.into_iter().collect()
    }
}

/// Starts a fleet with a worker per keeper, each under this limit for the test's only provider.
async fn fleet(
    keepers: &[Arc<dyn RateLimits>],
    config: LimitConfig,
    script: impl Fn(&Value) -> Reply + Send + Sync + 'static,
) -> (Fleet, Calls) {
    let calls = Calls::default();
    let noted = calls.clone();
    let script = move |request: &Value| {
        noted.note();
        script(request)
    };
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    calls.0.lock().unwrap().0 = Some(fleet.clock.clone());
    for keeper in keepers {
        let configs = BTreeMap::from([("test/*".to_owned(), config)]);
        fleet.add_worker_with(16, |deps| {
            let limits = ModelLimits::from_config(&configs, &deps.providers, Arc::clone(keeper)).unwrap();
            deps.with_limits(limits)
        });
    }
    (fleet, calls)
}

fn per_minute(requests: u64) -> LimitConfig {
    LimitConfig { requests_per_minute: Some(requests), tokens_per_minute: None }
}

fn job(tenant: &str) -> Value {
    let meta = if tenant.is_empty() { json!({}) } else { json!({"tenant_id": tenant}) };
    json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "meta": meta})
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn two_workers_share_a_limit() {
    for shared in Shared::every().await {
        let keepers = [Arc::clone(&shared.one), Arc::clone(&shared.other)];
        let (fleet, calls) = fleet(&keepers, per_minute(60), |_| Reply::text("done")).await;
        let mut jobs = Vec::new();
        for _ in 0..16 {
            jobs.push(fleet.push(&job("")).await);
        }
        fleet.models.seen(10).await;
        fleet.clock.advance_ms(4_000);
        fleet.models.seen(14).await;
        fleet.clock.advance_ms(2_000);
        for id in &jobs {
            fleet.wait_for(id, &[JobState::Completed]).await;
        }
        assert_eq!(calls.by_second(), [(0, 10), (4, 4), (6, 2)], "{}", shared.name);
        fleet.end().await;
    }
}

#[tokio::test]
async fn each_tenant_has_a_limit_of_its_own() {
    let keeper: Arc<dyn RateLimits> = Arc::new(LocalLimits::one_of(1));
    let (fleet, calls) = fleet(&[keeper], per_minute(6), |_| Reply::text("done")).await;
    let first = fleet.push(&job("a")).await;
    fleet.wait_for(&first, &[JobState::Completed]).await;
    let waiting = fleet.push(&job("a")).await;
    let other = fleet.push(&job("b")).await;
    fleet.wait_for(&other, &[JobState::Completed]).await;
    fleet.clock.advance_ms(10_000);
    fleet.wait_for(&waiting, &[JobState::Completed]).await;
    assert_eq!(calls.by_second(), [(0, 2), (10, 1)]);
    fleet.end().await;
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_redis), ignore = "needs PostgreSQL and Redis")]
async fn every_worker_holds_a_provider_that_asks_for_it() {
    for status in [429, 503] {
        for shared in Shared::every().await {
            let keepers = [Arc::clone(&shared.one), Arc::clone(&shared.other)];
            let first = AtomicBool::new(true);
            let answer = move |_: &Value| match first.swap(false, Ordering::SeqCst) {
                true => Reply::Later(status, 20),
                false => Reply::text("done"),
            };
            let (fleet, calls) = fleet(&keepers, LimitConfig::default(), answer).await;
            let mut jobs = vec![fleet.push(&job("refused")).await];
            fleet.wait_for(&jobs[0], &[JobState::Retryable]).await;
            for _ in 0..4 {
                jobs.push(fleet.push(&job("")).await);
            }
            // A job with a long wait returns its slot.
            for id in &jobs[1..] {
                fleet.wait_for(id, &[JobState::Retryable]).await;
            }
            fleet.clock.advance_ms(20_000);
            fleet.tick().await;
            for id in &jobs {
                fleet.wait_for(id, &[JobState::Completed]).await;
            }
            assert_eq!(calls.by_second(), [(0, 1), (20, 5)], "{} and {status}", shared.name);
            fleet.end().await;
        }
    }
}

#[tokio::test]
async fn a_waiting_job_holds_no_budget_and_is_cancelled_at_once() {
    let keeper: Arc<dyn RateLimits> = Arc::new(LocalLimits::one_of(1));
    let (mut fleet, calls) = fleet(&[keeper], per_minute(6), |_| Reply::text("done")).await;
    let budgeted = || {
        let mut job = job("");
        job["ext_agent_token_budget"] = json!(100_000);
        job
    };
    let first = fleet.push(&budgeted()).await;
    fleet.wait_for(&first, &[JobState::Completed]).await;
    let cancelled = fleet.push(&budgeted()).await;
    let drained = fleet.push(&budgeted()).await;
    for id in [&cancelled, &drained] {
        fleet.wait_for(id, &[JobState::Active]).await;
    }
    let reserved = "SELECT count(*) FROM totals WHERE reserved <> 0";
    assert_eq!(fleet.number(reserved).await, 0, "a call that waits has reserved something");
    fleet.post(&format!("/ojs/v1/jobs/{cancelled}/cancel"), &json!({})).await;
    assert_eq!(fleet.settled(&cancelled).await["state"], "cancelled");
    fleet.stop_workers().await;
    assert_eq!(fleet.job(&drained).await["state"], "available");
    assert_eq!(fleet.event_names(&drained).await.last().unwrap(), "job.yielded");
    assert_eq!(calls.by_second(), [(0, 1)]);
    fleet.end().await;
}

#[tokio::test]
async fn a_held_model_is_skipped_for_another_model() {
    let keeper: Arc<dyn RateLimits> = Arc::new(LocalLimits::one_of(1));
    let (fleet, _) = fleet(&[keeper], LimitConfig::default(), |request| match request["model"].as_str() {
        Some("first") => Reply::Later(429, 20),
        _ => Reply::text("done"),
    })
    .await;
    let job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "first", "ext_agent_fallback_models": ["second"]});
    for _ in 0..3 {
        let id = fleet.push(&job).await;
        fleet.wait_for(&id, &[JobState::Completed]).await;
    }
    let requested: Vec<Value> =
        fleet.models.calls().iter().map(|call| call.request["model"].clone()).collect();
    assert_eq!(
        requested,
        ["first", "second", "second", "second"],
        "the first model is called once and then held"
    );
    fleet.end().await;
}

/// A job that a hold delays has made no call and so has not failed. It resumes when the hold ends, whatever its retry
/// policy.
#[tokio::test]
async fn a_job_that_is_held_back_loses_no_attempt() {
    let keeper: Arc<dyn RateLimits> = Arc::new(LocalLimits::one_of(1));
    let first = AtomicBool::new(true);
    let answer = move |_: &Value| match first.swap(false, Ordering::SeqCst) {
        true => Reply::Later(429, 60),
        false => Reply::text("done"),
    };
    let (fleet, calls) = fleet(&[keeper], LimitConfig::default(), answer).await;
    let mut jobs = vec![fleet.push(&job("")).await];
    fleet.wait_for(&jobs[0], &[JobState::Retryable]).await;
    for _ in 0..3 {
        let mut once = job("");
        once["options"] = json!({"retry": {"max_attempts": 1}});
        jobs.push(fleet.push(&once).await);
    }
    for id in &jobs[1..] {
        let held = fleet.wait_for(id, &[JobState::Retryable, JobState::Discarded]).await;
        assert_eq!(held["state"], "retryable", "{held:#}");
    }
    assert_eq!(calls.by_second(), [(0, 1)], "no other call was made");
    fleet.clock.advance_ms(60_000);
    fleet.tick().await;
    for id in &jobs {
        fleet.wait_for(id, &[JobState::Completed]).await;
    }
    fleet.end().await;
}
