//! The provider against a real server that replays recorded answers.

use super::*;
use crate::model::Model as _;
use crate::model::http::HttpModel;
use crate::model::http::fixture::{
    Server, broken, events, picture_of_a_tool, provider, replay, request, summary, tides,
};
use serde_json::json;
use turnstone_domain::message::{Message, Role};

fn local(server: &Server, settings: Value) -> HttpModel {
    provider(server, Box::new(Messages), settings)
}

#[tokio::test]
async fn the_key_and_the_version_are_sent_as_headers() {
    let server = replay(200, include_str!("samples/answer.sse")).await;
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "kestrel-9000-key\n").unwrap();
    let model = local(&server, json!({"api_key": format!("file:{}", key.display())}));
    model.answer(&tides()).await.unwrap();
    let headers = server.seen(0).1;
    assert_eq!(headers["x-api-key"], "kestrel-9000-key");
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    assert!(!format!("{model:?}").contains("kestrel"));
}

#[tokio::test]
async fn the_version_can_be_another_and_the_form_can_be_left_to_the_prompt() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    let settings = json!({"structured_output": "prompt", "headers": {"anthropic-version": "2030-01-01"}});
    let request = ModelRequest { temperature: Some(1.7), ..tides() };
    local(&server, settings).answer(&request).await.unwrap();
    let (_, headers, body) = server.seen(0);
    assert_eq!(headers.get_all("anthropic-version").iter().collect::<Vec<_>>(), ["2030-01-01"]);
    assert_eq!(
        (&body["tools"].as_array().unwrap().len(), &body["tool_choice"]["type"]),
        (&1, &json!("auto"))
    );
    assert_eq!(body["temperature"], 1.0, "this provider knows no more");
}

#[tokio::test]
async fn tools_that_were_called_are_named_also_when_none_is_on_offer() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    let mut request = ModelRequest { tools: Vec::new(), ..tides() };
    local(&server, json!({})).answer(&request).await.unwrap();
    let body = server.seen(0).2;
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "final_answer"}));
    request.output.schema = None;
    local(&server, json!({})).answer(&request).await.unwrap();
    let body = server.seen(1).2;
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["tools"][0]["name"], "get_tide");
    request.messages.truncate(1);
    request.messages[0] = Message::text(Role::User, "").into();
    local(&server, json!({})).answer(&request).await.unwrap();
    let body = server.seen(2).2;
    assert!(body.get("tools").is_none());
    assert_eq!(body["messages"][0]["content"][0]["text"], "(no text)");
}

#[tokio::test]
async fn a_call_of_the_answers_tool_is_the_answer() {
    let server = replay(200, include_str!("samples/answer.sse")).await;
    let answer = local(&server, json!({})).answer(&tides()).await.unwrap();
    let expected = json!(["{\"low\":\"14:07\"}", [], "stop", [300, 0, 19, 0], "claude-sample-2026"]);
    assert_eq!(summary(&answer), expected);
}

#[tokio::test]
async fn an_answer_that_was_complete_needs_no_more_of_the_stream() {
    let (cut, _) = include_str!("samples/text.sse").split_once("event: message_stop").unwrap();
    let server = Server::start(move || async move { events(broken(cut)) }).await;
    local(&server, json!({})).answer(&request()).await.unwrap();
}

/// Issue 16: a picture of a tool is part of its outcome.
#[tokio::test]
async fn a_picture_of_a_tool_is_in_its_outcome() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    local(&server, json!({})).answer(&picture_of_a_tool()).await.unwrap();
    let source = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
    let content = json!([{"type": "text", "text": "seen"}, {"type": "image", "source": source}]);
    assert_eq!(server.seen(0).2["messages"][2]["content"][0]["content"], content);
}
