//! Calls that fail before a tool runs are announced like all others.

use super::{ask, every_result_follows_its_call, request_events};
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply, model_server};

const LEAD: &str = r#"
kind: "openagentspec:v1/agent"
name: lead
description: An agent that books.
intent: You are lead.
owner: tests
capabilities:
  book: {user_identity: false, input_restriction: {assertion: "false"}}
"#;

/// Calls an unknown tool, and one that a restriction refuses.
fn script(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("no-such-tool", json!({"a": 1})),
        1 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("done"),
    }
}

/// AP-08: a refused call is a ToolCall, and then a ToolError.
#[tokio::test]
async fn a_refused_call_is_announced_before_its_error() {
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register(LEAD).await;
    ask(&fleet, &json!({"input": "go", "request_id": "r"})).await;
    let events = request_events(&fleet, "r").await;
    every_result_follows_its_call(&events);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "tool_error").count(), 2, "{events:#?}");
    let first = events.iter().find(|event| event["type"] == "tool_call").unwrap();
    assert_eq!((&first["function_name"], &first["args"]), (&json!("no-such-tool"), &json!({"a": 1})));
    fleet.end().await;
}

/// AP-20: a text that a tool returns is a ToolTextOutput before the ToolResult; any other output is a result alone.
#[tokio::test]
async fn a_text_of_a_tool_is_announced_before_its_result() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 | 1 => Reply::call("book", json!({"price": 1})),
        _ => Reply::text("done"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.tools.fail_with("book", 1, (StatusCode::OK, json!("booked as b-7")));
    let document = LEAD.replace(", input_restriction: {assertion: \"false\"}", "");
    fleet.register(document).await;
    ask(&fleet, &json!({"input": "go", "request_id": "r"})).await;
    let events = request_events(&fleet, "r").await;
    let of_tool: Vec<&Value> = events.iter().filter(|event| event["role"] == "tool").collect();
    let kinds: Vec<&str> = of_tool.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds, ["tool_text_output", "tool_result", "tool_result"], "{events:#?}");
    assert_eq!(of_tool[0]["content"], "booked as b-7");
    assert_eq!(of_tool[1]["text_result"], "booked as b-7");
    fleet.end().await;
}
