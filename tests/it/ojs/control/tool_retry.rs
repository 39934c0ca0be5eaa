//! The next turn repeats a failed call, under the policies of the job and of the tool.

use super::{agent_job, control, granted};
use crate::stores::on_stores;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server};

on_stores!(
    everywhere: [],
    sqlite_first: [
        a_call_is_made_again_before_the_next_model_call_with_its_key,
        a_running_worker_receives_the_retry,
        a_call_with_an_effect_is_repeated_only_with_approval,
        a_plain_jobs_retries_follow_its_policy,
        an_invalid_tool_retry_is_refused,
    ],
);

/// A model that calls a tool, waits at the gate, and then answers.
fn once(tool: &'static str, gate: &Gate) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    let gate = gate.clone();
    move |request| match model_server::outcomes(request) {
        _ if request["messages"].to_string().contains("was made again") => Reply::text("done"),
        0 => Reply::call(tool, json!({"q": 1})),
        _ => Reply::call("web_search", json!({})).behind(&gate),
    }
}

fn job(alternate: &str) -> Value {
    let mut job = agent_job("go");
    job["ext_agent_v2"] = json!({"tool_retry": {"max_attempts": 2, "alternate_provider": alternate}});
    job["ext_agent_tools"] = json!([{"name": "search"}, {"name": "book"}, {"name": "web_search"}]);
    job
}

/// Pauses a job after its first turn, and returns it with its call.
async fn after_a_call(backend: Backend, tool: &'static str) -> (Fleet, String, String, Gate) {
    let gate = Gate::default();
    let fleet = Fleet::builder().on(backend).model(once(tool, &gate)).start().await;
    let id = fleet.push(&job("search")).await;
    fleet.models.seen(2).await;
    let engagement = fleet.engagement_of(&id).await;
    let calls = fleet.get(&format!("/engagements/{engagement}/tool-calls")).await;
    let call = calls["tool_calls"][0]["call_id"].as_str().unwrap().to_owned();
    (fleet, id, call, gate)
}

async fn a_call_is_made_again_before_the_next_model_call_with_its_key(backend: Backend) {
    let (fleet, id, call, gate) = after_a_call(backend, "search").await;
    granted(&fleet, &id, "pause", json!({})).await;
    let retried = granted(&fleet, &id, "tool-retry", json!({"tool_call_id": call, "error": "it lied"})).await;
    assert_eq!((&retried["retried"], &retried["provider"]), (&json!(true), &json!("search")));
    gate.open();
    let given = "SELECT count(*) FROM jobs WHERE state = 'available' AND held = 1";
    fleet.until("the job is given back", async || fleet.number(given).await == 1).await;
    granted(&fleet, &id, "resume", json!({})).await;
    fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let keys: Vec<_> =
        fleet.tools.calls().iter().filter(|c| c.tool == "search").map(|c| c.key.clone()).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(keys[0], keys[1], "a repeated call has the same key");
    let last = fleet.models.calls().last().unwrap().request["messages"].to_string();
    assert!(last.contains("was made again"), "the model did not receive it: {last}");
    assert_eq!(fleet.number("SELECT count(*) FROM tool_calls WHERE again = 1").await, 0);
    fleet.end().await;
}

async fn a_running_worker_receives_the_retry(backend: Backend) {
    let (fleet, id, call, gate) = after_a_call(backend, "search").await;
    granted(&fleet, &id, "tool-retry", json!({"tool_call_id": call})).await;
    // The request is stored: the worker is notified, or finds it by polling.
    gate.open();
    let again = async || fleet.tools.calls().iter().filter(|c| c.tool == "search").count() == 2;
    fleet.until("the call is made again", again).await;
    fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    fleet.end().await;
}

async fn a_call_with_an_effect_is_repeated_only_with_approval(backend: Backend) {
    let (fleet, id, call, gate) = after_a_call(backend, "book").await;
    let (status, answer) = control(&fleet, &id, "tool-retry", json!({"tool_call_id": call})).await;
    assert_eq!(status.as_u16(), 409, "{answer}");
    // Another provider does not replace the approval.
    let other = json!({"tool_call_id": call, "use_alternate": true});
    assert_eq!(control(&fleet, &id, "tool-retry", other).await.0.as_u16(), 409);
    let approved = json!({"tool_call_id": call, "approved": true, "use_alternate": true});
    let retried = granted(&fleet, &id, "tool-retry", approved).await;
    assert_eq!(retried["provider"], "search", "the job's other provider is another tool of its agent");
    gate.open();
    fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let called = |name: &str| fleet.tools.calls().iter().filter(|c| c.tool == name).count();
    assert_eq!((called("book"), called("search")), (1, 1));
    fleet.end().await;
}

async fn a_plain_jobs_retries_follow_its_policy(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    let mut job = json!({"type": "agent.tool-retry", "args": []});
    job["ext_agent_v2"] = json!({"tool_retry": {"max_attempts": 2, "alternate_provider": "other"}});
    let id = fleet.push(&job).await;
    let body = json!({"tool_call_id": "tc-1", "error": "timeout", "use_alternate": true});
    for attempt in [1, 2] {
        let retried = granted(&fleet, &id, "tool-retry", body.clone()).await;
        assert_eq!((&retried["provider"], &retried["attempt"]), (&json!("other"), &json!(attempt)));
    }
    assert_eq!(control(&fleet, &id, "tool-retry", body).await.0.as_u16(), 409);
    // Each call has its own count, and its own provider unless the other one is requested.
    let retried = granted(&fleet, &id, "tool-retry", json!({"tool_call_id": "tc-2"})).await;
    assert_eq!((&retried["provider"], &retried["attempt"]), (&Value::Null, &json!(1)));
    assert_eq!(fleet.event_names(&id).await.iter().filter(|n| *n == "agent.tool_retried").count(), 3);
    fleet.end().await;
}

async fn an_invalid_tool_retry_is_refused(backend: Backend) {
    let fleet = Fleet::builder().on(backend).workers(0).start().await;
    let agent = fleet.push(&job("nothing")).await;
    let plain = fleet.push(&json!({"type": "mail.send", "args": []})).await;
    let unknown = "01890000-0000-7000-8000-000000000000";
    for (id, body, status) in [
        (unknown, json!({"tool_call_id": "x"}), 404),
        (agent.as_str(), json!({"tool_call_id": "x"}), 404),
        (&plain, json!({"tool_call_id": "x", "use_alternate": true}), 422),
        (&plain, json!({}), 400),
        (&plain, json!({"tool_call_id": ""}), 400),
        (&plain, json!({"tool_call_id": "x", "use_alternate": "yes"}), 400),
    ] {
        let (got, answer) = control(&fleet, id, "tool-retry", body.clone()).await;
        assert_eq!(got.as_u16(), status, "{body}: {answer}");
    }
    fleet.end().await;
}
