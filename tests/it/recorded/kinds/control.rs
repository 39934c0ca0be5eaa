//! Engagements that are paused and resumed, and repeated calls.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, job, with};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Gate, Reply, model_server};

recordings!(everywhere: [], sqlite_first: [pause_and_resume, call_that_is_made_again]);

async fn control(stage: &mut Stage, id: &str, verb: &str, body: Value) {
    stage.post(&format!("/ojs/v1/agents/{id}/{verb}"), &body).await;
}

/// A job is paused before its first turn and again in its model call.
async fn pause_and_resume(ground: Ground) -> Value {
    let gate = Gate::default();
    let held = gate.clone();
    let script = move |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": 1})).behind(&held),
        _ => Reply::text("done"),
    };
    let mut stage = Stage::of(ground.fleet(script).workers(0)).await;
    let id = stage.push(&job("slow")).await;
    control(&mut stage, &id, "pause", json!({"reason": "a look first"})).await;
    control(&mut stage, &id, "resume", json!({"approved": true, "comment": "fine"})).await;
    stage.fleet.add_worker(1);
    stage.fleet.models.seen(1).await;
    control(&mut stage, &id, "pause", json!({})).await;
    gate.open();
    stage.fleet.wait_for(&id, &[JobState::Available]).await;
    control(&mut stage, &id, "resume", json!({})).await;
    stage.ended(&id).await;
    stage.recorded().await
}

/// An operator repeats a call with another tool; the next turn sends the outcome to the model.
async fn call_that_is_made_again(ground: Ground) -> Value {
    let gate = Gate::default();
    let held = gate.clone();
    let script = move |request: &Value| match model_server::outcomes(request) {
        _ if request["messages"].to_string().contains("was made again") => Reply::text("done"),
        0 => Reply::call("book", json!({"q": 1})),
        _ => Reply::call("web_search", json!({})).behind(&held),
    };
    let mut stage = ground.stage(script).await;
    let more = json!({"ext_agent_v2": {"tool_retry": {"max_attempts": 2, "alternate_provider": "search"}},
                      "ext_agent_tools": [{"name": "search"}, {"name": "book"}, {"name": "web_search"}]});
    let id = stage.push(&with(job("go"), more)).await;
    stage.fleet.models.seen(2).await;
    let path = format!("/engagements/{}/tool-calls", stage.fleet.engagement_of(&id).await);
    let call = stage.get(&path).await["tool_calls"][0]["call_id"].clone();
    control(&mut stage, &id, "pause", json!({})).await;
    control(&mut stage, &id, "tool-retry", json!({"tool_call_id": call})).await;
    let approved = json!({"tool_call_id": call, "approved": true, "use_alternate": true, "error": "it lied"});
    control(&mut stage, &id, "tool-retry", approved).await;
    gate.open();
    stage.fleet.wait_for(&id, &[JobState::Available]).await;
    control(&mut stage, &id, "resume", json!({})).await;
    stage.ended(&id).await;
    stage.recorded().await
}
