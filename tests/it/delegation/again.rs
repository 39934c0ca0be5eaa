//! A call that an agent answered is repeated (agent control, tool-retry).

use super::{answers, ask, calls, engagement, oas, who};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Backend, Fleet, Gate, Reply};

async fn call_of(fleet: &Fleet, job: &str, position: usize) -> Value {
    let id = fleet.engagement_of(job).await;
    fleet.get(&format!("/engagements/{id}/tool-calls")).await["tool_calls"][position].clone()
}

async fn retry(fleet: &Fleet, job: &str, call: &Value) -> (StatusCode, Value) {
    let body = json!({"tool_call_id": call["call_id"], "approved": true});
    fleet.post(&format!("/ojs/v1/agents/{job}/tool-retry"), &body).await
}

/// The next turn calls the agent once more, and the new answer replaces the earlier one. The call resolves to the
/// agent, not to a tool of that name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_call_runs_the_agent_again() {
    join_all(Backend::ALL.map(asked_again)).await;
}

async fn asked_again(backend: Backend) {
    let (gate, times) = (Gate::default(), AtomicUsize::new(0));
    let held = gate.clone();
    let script = move |request: &Value| match (who(request), answers(request).len()) {
        _ if request["messages"].to_string().contains("was made again") => Reply::text("done"),
        ("lead", 0) => calls(&[("scout", "north")]),
        ("lead", _) => calls(&[("scout", "south")]).behind(&held),
        _ if newest(request) == "south" => Reply::text("nothing"),
        _ => Reply::text(["fog", "a ship"][times.fetch_add(1, Ordering::Relaxed).min(1)]),
    };
    let fleet = Fleet::builder().on(backend).model(script).start().await;
    fleet.register_all(&[oas("scout", &[]), oas("lead", &["scout"])]).await;
    let id = ask(&fleet, "lead", &json!({})).await;
    fleet.models.seen(3).await;
    let call = call_of(&fleet, &id, 0).await;
    assert_eq!(call["outcome"]["output"]["text"], "fog", "{call:#}");
    let (status, body) = retry(&fleet, &id, &call).await;
    assert_eq!(status, StatusCode::OK, "{body:#}");
    gate.open();
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "done", "{done:#}");
    let call = call_of(&fleet, &id, 0).await;
    assert_eq!((&call["state"], &call["sends"]), (&json!("settled"), &json!(2)), "{call:#}");
    assert_eq!(call["outcome"]["output"]["text"], "a ship", "{call:#}");
    let last = fleet.models.calls().last().unwrap().request["messages"].to_string();
    assert!(last.contains("a ship") && last.contains("fog"), "the model receives both: {last}");
    assert_eq!(engagement(&fleet, &id).await["children"].as_array().unwrap().len(), 3);
    assert_eq!(fleet.number("SELECT count(*) FROM tool_calls WHERE again = 1").await, 0);
    fleet.end().await;
}

/// A call is in progress while its delegate runs.
#[tokio::test]
async fn a_running_call_is_not_repeated() {
    let gate = Gate::default();
    let held = gate.clone();
    let script = move |request: &Value| match (who(request), answers(request).len()) {
        ("lead", 0) => calls(&[("scout", "north")]),
        ("lead", _) => Reply::text("done"),
        _ => Reply::text("fog").behind(&held),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("scout", &[]), oas("lead", &["scout"])]).await;
    let id = ask(&fleet, "lead", &json!({})).await;
    fleet.models.seen(2).await;
    fleet.wait_for(&id, &[JobState::Pending]).await;
    let call = call_of(&fleet, &id, 0).await;
    let (status, body) = retry(&fleet, &id, &call).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body:#}");
    gate.open();
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(call_of(&fleet, &id, 0).await["outcome"]["output"]["text"], "fog");
    fleet.end().await;
}
