//! `tool_choice` is enforced by the worker, because a provider may ignore it.

use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply, model_server};

fn job(choice: &str) -> Value {
    json!({"type": "agent.x", "args": ["go"], "ext_agent_model": "m", "ext_agent_tools": [{"name": "search"}],
           "ext_agent_tool_choice": choice, "options": {"retry": {"max_attempts": 1}}})
}

/// Returns the content of the last message of a request.
fn last_word(request: &Value) -> &str {
    request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap_or_default()
}

/// AIX-09, Agent extension §2.2, issue 5: with `auto` the model decides.
#[tokio::test]
async fn auto_takes_an_answer_without_a_call() {
    let fleet = Fleet::builder().start().await;
    let id = fleet.push(&job("auto")).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    assert_eq!(fleet.models.calls()[0].request["tool_choice"], "auto");
    fleet.end().await;
}

/// AIX-09, Agent extension §2.2: with `required`, an answer without any call is not accepted.
#[tokio::test]
async fn required_without_a_call_is_repeated_once_and_then_fails() {
    let fleet = Fleet::builder().model(|_| Reply::text("I would rather not")).start().await;
    let id = fleet.push(&job("required")).await;
    let done = fleet.settled(&id).await;
    assert_eq!((&done["state"], &done["error"]["code"]), (&json!("discarded"), &json!("OSSA_LLM_ERROR")));
    let calls = fleet.models.calls();
    assert_eq!(calls.len(), 2);
    assert!(last_word(&calls[1].request).contains("demands a tool call"), "{}", calls[1].request);
    assert!(calls.iter().all(|call| call.request["tool_choice"] == "required"));
    fleet.end().await;
}

/// Agent extension §2.2: `required` applies to the first answer; the model may answer without a call afterwards.
#[tokio::test]
async fn required_is_met_by_a_call_in_the_repair_round() {
    let fleet = Fleet::builder()
        .model(|request| match model_server::outcomes(request) {
            0 if last_word(request).contains("demands a tool call") => Reply::call("search", json!({})),
            0 => Reply::text("I would rather not"),
            _ => Reply::text("found"),
        })
        .start()
        .await;
    let id = fleet.push(&job("required")).await;
    let done = fleet.settled(&id).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("found")));
    assert_eq!(fleet.tools.calls().len(), 1);
    assert_eq!(fleet.models.calls()[2].request["tool_choice"], "auto");
    fleet.end().await;
}

/// AIX-09, Agent extension §2.2: with `none` no tool is offered, and a call nevertheless is refused and not run.
#[tokio::test]
async fn none_offers_no_tool_and_runs_none() {
    let fleet = Fleet::builder()
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({"q": 1})),
            _ => Reply::text("without it, then"),
        })
        .start()
        .await;
    let id = fleet.push(&job("none")).await;
    let done = fleet.settled(&id).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("without it, then")));
    assert!(fleet.models.calls()[0].request.get("tools").is_none());
    assert_eq!(done["ext_agent_tool_results"][0]["error"]["code"], "AGENT_TOOL_NOT_FOUND");
    assert!(fleet.tools.calls().is_empty());
    fleet.end().await;
}
