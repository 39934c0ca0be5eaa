//! Requests that are cancelled in each of their states.

use super::{ask, register, request_events};
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server};

/// Cancels the request and checks the result: one end, nothing after it, and the same answer to a repeated
/// cancellation.
async fn cancelled(fleet: &Fleet, request: &str) -> Vec<Value> {
    let cancel = json!({"type": "CancelRequest", "request_id": request});
    let ended = ask(fleet, &cancel).await;
    assert_eq!((&ended["type"], &ended["finish_reason"]), (&json!("request_completed"), &json!("canceled")));
    assert_eq!(ask(fleet, &cancel).await, ended, "a finished request stays as it is");
    let events = request_events(fleet, request).await;
    let ends = events.iter().filter(|event| event["type"] == "request_completed").count();
    assert_eq!((ends, events.last()), (1, Some(&ended)));
    let status = fleet.get(&format!("/agents/lead/request/{request}")).await;
    assert_eq!((&status["status"], &status["finish_reason"]), (&json!("completed"), &json!("canceled")));
    events
}

/// AP-10, AP §3.5, §6.3.7: a request is cancelled while it is queued and during a model call; a new request is served
/// afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_cancelled_while_queued_and_during_a_model_call() {
    for backend in Backend::ALL {
        let mut fleet = Fleet::builder()
            .on(backend)
            .workers(0)
            .model(|request| match request["messages"].to_string().contains("stay") {
                true => Reply::Hang,
                false => Reply::text("done"),
            })
            .start()
            .await;
        register(&fleet).await;
        let post = async |fleet: &Fleet, id: &str, input: &str| {
            let (status, _) =
                fleet.post("/agents/lead/process", &json!({"input": input, "request_id": id})).await;
            assert_eq!(status, StatusCode::ACCEPTED);
        };
        post(&fleet, "queued", "stay").await;
        let events = cancelled(&fleet, "queued").await;
        let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["request_started", "chat_request", "request_completed"]);
        fleet.add_worker(1);
        post(&fleet, "asked", "stay").await;
        fleet.models.seen(1).await;
        cancelled(&fleet, "asked").await;
        post(&fleet, "next", "go").await;
        assert_eq!(request_events(&fleet, "next").await.last().unwrap()["finish_reason"], "success");
        assert_eq!(fleet.models.count(), 2, "a cancelled request calls no model");
        fleet.end().await;
    }
}

/// AP-10, AP §3.5: a request is cancelled during a tool call. The tool's result is discarded and reaches no model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_ends_while_a_tool_works() {
    let gate = Gate::default();
    let mut fleet = Fleet::builder()
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("book", json!({"price": 1})),
            _ => Reply::text("done"),
        })
        .start()
        .await;
    register(&fleet).await;
    fleet.tools.hold(&gate);
    ask(&fleet, &json!({"input": "go", "request_id": "tool"})).await;
    fleet.tools.seen(1).await;
    let events = cancelled(&fleet, "tool").await;
    gate.open();
    // A stopped worker has received the tool's result.
    fleet.stop_workers().await;
    assert!(events.iter().all(|event| event["type"] != "tool_result"));
    assert_eq!(request_events(&fleet, "tool").await, events, "nothing comes after the end");
    assert_eq!(fleet.models.count(), 1);
    fleet.end().await;
}
