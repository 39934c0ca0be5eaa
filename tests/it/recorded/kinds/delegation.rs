//! Delegation.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, job_of, who, with};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::documents::{oas, ossa};
use turnstone_tests::model_server::newest;
use turnstone_tests::{Gate, Reply, model_server};

recordings!(
    everywhere: [supervisor, delegates_at_once],
    sqlite_first: [handoff, delegate_that_fails, tree_that_is_cancelled],
);

/// Terms under which an OSSA agent may delegate.
fn may_ask(agents: &str, terms: &str) -> String {
    format!("  collaboration: {{delegation: {{enabled: true, allowed_agents: [{agents}], {terms}}}}}")
}

fn lead(request: &Value) -> Reply {
    match (who(request), model_server::outcomes(request)) {
        ("lead", 0) => Reply::call("scout", json!({"input": "look around"})),
        ("lead", _) => Reply::text("all is quiet"),
        ("scout", 0) => Reply::call("search", json!({"q": newest(request)})),
        (name, _) => Reply::text(format!("{name} saw nothing")),
    }
}

async fn supervisor(ground: Ground) -> Value {
    let mut stage = ground.stage(lead).await;
    stage
        .register(&[
            oas("scout", "capabilities: {search: {}}"),
            oas("lead", "capabilities: {\"oagent://scout\": {}}"),
        ])
        .await;
    stage.run(&with(job_of("lead"), json!({"ext_agent_token_budget": 50_000}))).await;
    stage.recorded().await
}

/// Two delegates of one turn. The second one's answer comes after the first one has ended, so that the order of
/// their events is always the same.
async fn delegates_at_once(ground: Ground) -> Value {
    let first_ended = Gate::default();
    let held = first_ended.clone();
    let script = move |request: &Value| match (who(request), model_server::outcomes(request)) {
        ("lead", 0) => {
            let requested = [("scout", "north"), ("clerk", "east")];
            let call = |(name, input): (&str, &str)| (name.to_owned(), json!({"input": input}));
            Reply::Calls(requested.map(call).into(), (12, 7))
        }
        ("lead", _) => Reply::text("all are back"),
        ("clerk", _) => Reply::text(format!("clerk {}", newest(request))).behind(&held),
        (name, _) => Reply::text(format!("{name} {}", newest(request))),
    };
    let mut stage = ground.stage(script).await;
    let lead = ossa("lead", &may_ask("scout, clerk", "type: parallel"));
    stage.register(&[oas("scout", ""), oas("clerk", ""), lead]).await;
    let id = stage.push(&job_of("lead")).await;
    stage.parked(&id).await;
    let jobs = stage.fleet.get("/ojs/v1/admin/jobs?order=asc").await;
    stage.ended(jobs["items"][1]["id"].as_str().unwrap()).await;
    first_ended.open();
    stage.ended(&id).await;
    stage.recorded().await
}

/// The agent that took over answers the next input, too.
async fn handoff(ground: Ground) -> Value {
    let script = |request: &Value| match who(request) {
        "desk" => Reply::call("expert", json!({"input": "he is angry"})),
        name => Reply::text(format!("{name}: {}", newest(request))),
    };
    let mut stage = ground.stage(script).await;
    let desk =
        "  collaboration: {handoffs: [{target_agent: expert, conditions: [anger], context_transfer: full}]}";
    stage.register(&[oas("expert", ""), ossa("desk", desk)]).await;
    let id = stage.run(&job_of("desk")).await;
    let path = format!("/engagements/{}?reopen=true", stage.fleet.engagement_of(&id).await);
    let said = stage.post(&path, &json!("and now?")).await;
    stage.ended(said["job_id"].as_str().unwrap()).await;
    stage.recorded().await
}

/// A delegate fails, and the model receives the error.
async fn delegate_that_fails(ground: Ground) -> Value {
    let script = |request: &Value| match (who(request), model_server::outcomes(request)) {
        ("lead", 0) => Reply::call("scout", json!({"input": "look"})),
        ("lead", _) => Reply::text("nobody came back"),
        _ => Reply::Status(400),
    };
    let mut stage = ground.stage(script).await;
    stage.register(&[oas("scout", ""), oas("lead", "capabilities: {scout: {}}")]).await;
    stage.run(&job_of("lead")).await;
    stage.recorded().await
}

async fn tree_that_is_cancelled(ground: Ground) -> Value {
    let gate = Gate::default();
    let held = gate.clone();
    let script = move |request: &Value| match who(request) {
        "scout" => Reply::text("too late").behind(&held),
        _ => lead(request),
    };
    let mut stage = ground.stage(script).await;
    stage.register(&[oas("scout", ""), oas("lead", "capabilities: {scout: {}}")]).await;
    let id = stage.push(&job_of("lead")).await;
    stage.fleet.models.seen(2).await;
    stage.parked(&id).await;
    stage.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    stage.fleet.wait_for(&id, &[JobState::Cancelled]).await;
    gate.open();
    stage.recorded().await
}
