//! Agents that ask their user.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, job, job_of, with};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [question_with_keys],
    sqlite_first: [question_that_is_cancelled],
);

fn travel(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"request_keys": {"city": "Where to?", "day": "When?"}})),
        _ => Reply::text("booked"),
    }
}

async fn question_with_keys(ground: Ground) -> Value {
    let mut stage = ground.stage(travel).await;
    stage.register(&[oas("guide", "capabilities: {ask-user: {}}")]).await;
    let id = stage.push(&job_of("guide")).await;
    stage.parked(&id).await;
    let path = format!("/engagements/{}", stage.fleet.engagement_of(&id).await);
    stage.get(&path).await;
    let answer = format!("{path}/answer");
    stage.post(&answer, &json!({"answers": {"city": "Oslo"}})).await;
    // The model continues after the repetition, so that both answers are given while the job waits or runs.
    stage.post(&answer, &json!({"answers": {"city": "Oslo", "day": 1}})).await;
    stage.ended(&id).await;
    stage.post(&answer, &json!({"answers": {"city": "Oslo", "day": 1}})).await;
    stage.post(&answer, &json!({"answers": {"city": "Rome", "day": 1}})).await;
    stage.recorded().await
}

async fn question_that_is_cancelled(ground: Ground) -> Value {
    let mut stage = ground.stage(|_| Reply::call("ask_user", json!({"question": "Where to?"}))).await;
    let id = stage.push(&with(job("a trip"), json!({"ext_agent_tools": [{"name": "ask_user"}]}))).await;
    stage.parked(&id).await;
    stage.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    let path = format!("/engagements/{}/answer", stage.fleet.engagement_of(&id).await);
    stage.post(&path, &json!({"answers": {"answer": "Oslo"}})).await;
    stage.recorded().await
}
