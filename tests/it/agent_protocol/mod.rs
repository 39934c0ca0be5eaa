//! The Agent Protocol (draft, 2025 edition) through real HTTP, on both databases.

mod artifacts;
mod asking;
mod calls;
mod client;
mod continuing;
mod delegates;
mod ending;
mod naming;
mod reading;
mod resuming;
mod slow;
mod speaking;
mod surviving;

use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// An agent that may call a tool and another agent.
const LEAD: &str = r#"
kind: "openagentspec:v1/agent"
name: lead
description: An agent that leads.
intent: You are lead.
owner: tests
capabilities:
  book: {user_identity: false}
  oagent://scout: {}
exposes:
  price: recent["book"].inputs.price
"#;
const SCOUT: &str = r#"
kind: "openagentspec:v1/agent"
name: scout
description: An agent that looks around.
intent: You are scout.
owner: tests
capabilities:
  book: {user_identity: false}
"#;

/// The lead books, delegates to the scout, and answers; the scout books too.
fn script(request: &Value) -> Reply {
    let system = request["messages"][0]["content"].as_str().unwrap_or_default();
    match (system.contains("You are scout"), model_server::outcomes(request)) {
        (true, 0) => Reply::call("book", json!({"price": 2})),
        (true, _) => Reply::text("all quiet"),
        (false, 0) => Reply::call("book", json!({"price": 1})),
        (false, 1) => Reply::call("scout", json!({"input": "look"})),
        (false, _) => Reply::text("done"),
    }
}

async fn fleet(backend: Backend) -> Fleet {
    let fleet = Fleet::builder().on(backend).workers(1).model(script).start().await;
    register(&fleet).await;
    fleet
}

async fn register(fleet: &Fleet) {
    fleet.register_all(&[SCOUT, LEAD]).await;
}

/// Runs a job of the lead to its end and returns its id and the id of its run.
async fn led(fleet: &Fleet) -> (String, String) {
    let job = json!({"type": "agent.lead", "args": ["go"], "meta": {"agent": "lead"}});
    let id = fleet.push(&job).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let run = fleet.engagement_of(&id).await;
    (id, run)
}

fn kinds(events: &[Value]) -> Vec<(&str, i64)> {
    events.iter().map(|event| (event["type"].as_str().unwrap(), event["depth"].as_i64().unwrap())).collect()
}

/// Sends a request to the lead and returns an event: its first, or its end for a cancellation. The server answers 202
/// after five seconds, which happens on a busy machine; then the event is read from the list.
async fn ask(fleet: &Fleet, request: &Value) -> Value {
    let client = turnstone_tests::http::client();
    let sent = client.post(format!("{}/agents/lead/process?wait=True", fleet.url)).json(request);
    let answer = sent.send().await.unwrap();
    if answer.status() != StatusCode::ACCEPTED {
        let (status, event) = (answer.status(), answer.json().await.unwrap());
        assert_eq!(status, StatusCode::OK, "{event}");
        return event;
    }
    let id = answer.headers()["x-request-id"].to_str().unwrap();
    let path = format!("/agents/lead/getevents/{id}?since=0");
    let ended = |event: &Value| event["type"] == "request_completed";
    let wanted = |events: Value| -> Option<Value> {
        let events = events.as_array()?;
        match request["type"].as_str() {
            Some("CancelRequest" | "cancel") => events.last().filter(|event| ended(event)).cloned(),
            _ => events.first().cloned(),
        }
    };
    let mut event = None;
    fleet
        .until("the request has begun, or ended", async || {
            event = wanted(fleet.get(&path).await);
            event.is_some()
        })
        .await;
    event.unwrap()
}

/// Asserts that every call is announced once and before its result or error.
fn every_result_follows_its_call(events: &[Value]) {
    let mut called = Vec::new();
    for event in events {
        let known = called.contains(&&event["call_id"]);
        match event["type"].as_str() {
            Some("tool_call") => {
                assert!(!known, "announced twice: {event} in {events:#?}");
                called.push(&event["call_id"]);
            }
            Some("tool_result" | "tool_error") => assert!(known, "{event} has no tool_call: {events:#?}"),
            _ => {}
        }
    }
    assert!(!called.is_empty(), "no call was announced: {events:#?}");
}

/// Returns all events of a request, once it has ended.
async fn request_events(fleet: &Fleet, request: &str) -> Vec<Value> {
    let url = format!("{}/agents/lead/getevents/{request}?stream=true", fleet.url);
    let frames = turnstone_tests::sse::read(&url, None, |_| false).await;
    frames.iter().map(|frame| serde_json::from_str(&frame.data).unwrap()).collect()
}
