//! Engagements that are begun by the Agent Protocol and by A2A.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, who};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [agent_protocol_run],
    sqlite_first: [agent_protocol_question, a2a_tasks],
);

/// The lead books, calls the scout, and answers.
fn led(request: &Value) -> Reply {
    match (who(request), model_server::outcomes(request)) {
        ("scout", _) => Reply::text("all quiet"),
        (_, 0) => Reply::call("book", json!({"price": 1})),
        (_, 1) => Reply::call("scout", json!({"input": "look"})),
        _ => Reply::text(format!("done: {}", newest(request))),
    }
}

/// Sends a request of the Agent Protocol. Its answer is the first event or empty, depending on time, so only its
/// events are recorded.
async fn process(stage: &mut Stage, body: Value) -> String {
    let (status, answer) =
        stage.unrecorded(Method::POST, "/agents/lead/process", &[], body.to_string()).await;
    assert!(matches!(status, 200 | 202), "{answer:#}");
    let path = format!("/agents/lead/request/{}", body["request_id"].as_str().unwrap());
    stage.fleet.get(&path).await["run_id"].as_str().unwrap().to_owned()
}

/// Waits until a request has this status, and records it and its events.
async fn reached(stage: &mut Stage, request: &str, wanted: &str) {
    let path = format!("/agents/lead/request/{request}");
    stage.fleet.until(wanted, async || stage.fleet.get(&path).await["status"] == wanted).await;
    stage.get(&path).await;
    stage.get(&format!("/agents/lead/getevents/{request}?since=0")).await;
}

async fn agent_protocol_run(ground: Ground) -> Value {
    let mut stage = ground.stage(led).await;
    let capabilities = "capabilities:\n  book: {user_identity: false}\n  oagent://scout: {}\n";
    stage.register(&[oas("scout", ""), oas("lead", capabilities)]).await;
    let run = process(&mut stage, json!({"input": "go", "request_id": "r-1", "run_context": {"a": 1}})).await;
    reached(&mut stage, "r-1", "completed").await;
    process(&mut stage, json!({"input": "go on", "request_id": "r-2", "run_id": run})).await;
    reached(&mut stage, "r-2", "completed").await;
    stage.get("/agents/lead/runs").await;
    stage.get("/agents/lead/describe").await;
    stage.recorded().await
}

async fn agent_protocol_question(ground: Ground) -> Value {
    let asks = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"request_keys": {"city": "Where to?"}})),
        _ => Reply::text("booked"),
    };
    let mut stage = ground.stage(asks).await;
    stage.register(&[oas("lead", "capabilities: {ask-user: {}}")]).await;
    process(&mut stage, json!({"input": "a trip", "request_id": "r-1"})).await;
    reached(&mut stage, "r-1", "waiting_for_input").await;
    let answer = json!({"type": "ResumeWithInput", "request_id": "r-1", "request_keys": {"city": "Oslo"}});
    process(&mut stage, answer).await;
    reached(&mut stage, "r-1", "completed").await;
    stage.recorded().await
}

async fn call(stage: &mut Stage, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    stage.send_with(Method::POST, "/a2a/clerk", &[("a2a-version", "1.0")], call).await
}

fn message(id: &str, parts: Value, more: Value) -> Value {
    let message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    json!({"message": crate::recorded::stage::with(message, more)})
}

/// A task with a question, which is answered, and another task of its context.
async fn a2a_tasks(ground: Ground) -> Value {
    let asks = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"request_keys": {"city": "Which city?"}})),
        _ => Reply::text(format!("heard {}", newest(request))),
    };
    let mut stage = ground.stage(asks).await;
    stage.register(&[oas("clerk", "capabilities: {ask-user: {}}")]).await;
    let requested = call(&mut stage, "SendMessage", message("m-1", json!([{"text": "go"}]), json!({}))).await;
    let task = requested["result"]["task"].clone();
    let named = json!({"taskId": task["id"], "contextId": task["contextId"]});
    call(&mut stage, "SendMessage", message("m-2", json!([{"text": "Oslo"}]), named)).await;
    let context = json!({"contextId": task["contextId"]});
    call(&mut stage, "SendMessage", message("m-3", json!([{"text": "and?"}, {"data": {"n": 1}}]), context))
        .await;
    call(&mut stage, "ListTasks", json!({"includeArtifacts": true, "historyLength": 100})).await;
    call(&mut stage, "CancelTask", json!({"id": task["id"]})).await;
    stage.recorded().await
}
