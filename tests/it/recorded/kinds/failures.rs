//! Engagements that fail, are retried, time out, are cancelled or expire.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, job, retry, with};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [model_that_fails_at_first],
    sqlite_first: [

        model_that_is_throttled,
        fallback_model,
        job_that_takes_too_long,
        job_that_is_cancelled_in_its_call,
        job_that_expires,
        dead_letter_that_is_revived,
        worker_that_drains,
    ],
);

/// Gives these replies one after the other, and repeats the last one.
fn in_turn(replies: Vec<Reply>) -> impl Fn(&Value) -> Reply + Send + Sync {
    let requested = AtomicUsize::new(0);
    move |_| replies[requested.fetch_add(1, Ordering::SeqCst).min(replies.len() - 1)].clone()
}

async fn tried_twice(ground: Ground, first: Reply) -> Value {
    let mut stage = ground.stage(in_turn(vec![first, Reply::text("better")])).await;
    let id = stage.push(&with(job("go"), json!({"options": retry(3)}))).await;
    stage.retryable(&id).await;
    stage.pass_ms(60_000).await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn model_that_fails_at_first(ground: Ground) -> Value {
    tried_twice(ground, Reply::Status(500)).await
}

async fn model_that_is_throttled(ground: Ground) -> Value {
    tried_twice(ground, Reply::Later(429, 60)).await
}

async fn fallback_model(ground: Ground) -> Value {
    let script = |request: &Value| match request["model"].as_str() {
        Some("m") => Reply::Status(503),
        _ => Reply::text("said the small one"),
    };
    let mut stage = ground.stage(script).await;
    stage.run(&with(job("go"), json!({"ext_agent_fallback_models": ["small"]}))).await;
    stage.recorded().await
}

async fn job_that_takes_too_long(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::Hang).await;
    stage.run(&with(job("go"), json!({"options": with(retry(1), json!({"timeout_ms": 100}))}))).await;
    stage.recorded().await
}

async fn job_that_is_cancelled_in_its_call(ground: Ground) -> Value {
    let mut stage = ground
        .stage(|request| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({})),
            _ => Reply::Hang,
        })
        .await;
    let id = stage.push(&job("go")).await;
    stage.fleet.models.seen(2).await;
    stage.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn job_that_expires(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::text("done")).await;
    let later = json!({"delay_until": "+PT60S", "expires_at": "+PT30S"});
    let id = stage.push(&with(job("go"), json!({"options": with(retry(1), later)}))).await;
    stage.pass_ms(30_000).await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn dead_letter_that_is_revived(ground: Ground) -> Value {
    let mut stage = ground.stage(in_turn(vec![Reply::Status(400), Reply::text("better")])).await;
    let dead = json!({"options": {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}});
    let id = stage.run(&with(job("go"), dead)).await;
    stage.get(&format!("/ojs/v1/dead-letter/{id}")).await;
    // The answer has the job's state when it is read: no worker may have claimed it by then.
    stage.fleet.stop_workers().await;
    stage.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await;
    stage.fleet.add_worker(4);
    stage.fleet.wait_for(&id, &[JobState::Completed]).await;
    stage.recorded().await
}

/// A worker drains in a model call; the next worker resumes the turn from its checkpoints.
async fn worker_that_drains(ground: Ground) -> Value {
    let fleet =
        ground.fleet(in_turn(vec![Reply::call("search", json!({})), Reply::Hang, Reply::text("done")]));
    let mut stage = Stage::of(fleet.drain_grace(std::time::Duration::from_millis(1))).await;
    let id = stage.push(&job("go")).await;
    stage.fleet.models.seen(2).await;
    stage.fleet.stop_workers().await;
    stage.fleet.add_worker(4);
    stage.ended(&id).await;
    stage.recorded().await
}
