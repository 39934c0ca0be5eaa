//! The provider against a real server that replays recorded answers.

use super::*;
use crate::model::http::fixture::{
    Server, assert_heard, assert_times_out, broken, events, failed, picture_of_a_tool, pictures, provider,
    replay, request, tides,
};
use crate::model::{Model as _, ModelError};
use serde_json::json;
use turnstone_domain::message::{Message, Role};

fn local(server: &Server) -> AnthropicModel {
    provider(server, json!({}))
}

async fn answered(sample: &'static str) -> Value {
    crate::model::http::fixture::answered::<AnthropicConfig>(sample).await
}

#[tokio::test]
async fn a_conversation_is_sent_in_the_providers_format() {
    let server = replay(200, include_str!("samples/answer.sse")).await;
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "kestrel-9000-key\n").unwrap();
    let model: AnthropicModel = provider(&server, json!({"api_key": format!("file:{}", key.display())}));
    model.answer(&tides()).await.unwrap();
    let (path, headers, body) = server.seen(0);
    assert_eq!(path, "/v1/messages");
    assert_eq!(headers["x-api-key"], "kestrel-9000-key");
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    let recorded: Value = serde_json::from_str(include_str!("samples/request.json")).unwrap();
    assert_eq!(body, recorded);
    assert!(!format!("{model:?}").contains("kestrel"));
}

#[tokio::test]
async fn the_version_can_be_another_and_the_form_can_be_left_to_the_prompt() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    let settings = json!({"structured_output": "prompt", "headers": {"anthropic-version": "2030-01-01"}});
    let model: AnthropicModel = provider(&server, settings);
    let request = ModelRequest { temperature: Some(1.7), ..tides() };
    model.answer(&request).await.unwrap();
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
    local(&server).answer(&request).await.unwrap();
    let body = server.seen(0).2;
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "final_answer"}));
    request.output.schema = None;
    local(&server).answer(&request).await.unwrap();
    let body = server.seen(1).2;
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["tools"][0]["name"], "get_tide");
    request.messages.truncate(1);
    request.messages[0] = Message::text(Role::User, "").into();
    local(&server).answer(&request).await.unwrap();
    let body = server.seen(2).2;
    assert!(body.get("tools").is_none());
    assert_eq!(body["messages"][0]["content"][0]["text"], "(no text)");
}

#[tokio::test]
async fn recorded_answers_are_understood() {
    let text = "Low tide is at 14:07 – bring boots.";
    assert_eq!(
        answered(include_str!("samples/text.sse")).await,
        json!([text, [], "stop", [1180, 1024, 24, 0], "claude-sample-2026"])
    );
    let calls = json!([["get.tide", {"harbour": "Husum"}], ["get.tide", "{\"harbour\": \"Hus"]]);
    assert_eq!(
        answered(include_str!("samples/tools.sse")).await,
        json!(["I look it up.", calls, "tool_use", [210, 0, 38, 0], "claude-sample-2026"])
    );
    assert_eq!(
        answered(include_str!("samples/whole.json")).await,
        json!(["Low tide is at 14:07.", [], "length", [96, 0, 12, 0], "claude-sample-2026"])
    );
    assert_eq!(
        answered(include_str!("samples/filtered.json")).await,
        json!([
            "I cannot help with poaching seals.",
            [],
            "content_filter",
            [50, 0, 7, 0],
            "claude-sample-2026"
        ])
    );
    assert_eq!(
        answered(include_str!("samples/answer.sse")).await,
        json!(["{\"low\":\"14:07\"}", [], "stop", [300, 0, 19, 0], "claude-sample-2026"])
    );
}

#[tokio::test]
async fn the_text_is_heard_while_it_is_written() {
    assert_heard::<AnthropicConfig>(include_str!("samples/text.sse")).await;
}

#[tokio::test]
async fn failures_say_what_the_turn_does_next() {
    let error = failed::<AnthropicConfig>(200, include_str!("samples/failed.sse")).await;
    assert!(matches!(&error, ModelError::Unavailable(text) if text.contains("Overloaded")), "{error:?}");
    let error = failed::<AnthropicConfig>(429, include_str!("samples/busy.json")).await;
    assert!(
        matches!(&error, ModelError::RateLimited { message, .. } if message.contains("per-minute")),
        "{error:?}"
    );
    for nonsense in ["{\"object\": \"list\"}", "data: {oops\n\n"] {
        let error = failed::<AnthropicConfig>(200, nonsense).await;
        assert!(matches!(&error, ModelError::Malformed(_)), "{nonsense}: {error:?}");
    }
}

#[tokio::test]
async fn a_cut_stream_is_an_answer_only_when_the_model_had_come_to_its_end() {
    let whole = include_str!("samples/text.sse");
    for (until, complete) in [("event: message_delta", false), ("event: message_stop", true)] {
        let (cut, _) = whole.split_once(until).unwrap();
        let server = Server::start(move || async move { events(broken(cut)) }).await;
        let answer = local(&server).answer(&request()).await;
        assert_eq!(answer.is_ok(), complete, "{until}: {answer:?}");
        assert!(complete || matches!(answer, Err(ModelError::Unavailable(_))));
    }
    assert_times_out::<AnthropicConfig>().await;
}

/// Issue 16: a picture of a tool is part of its outcome.
#[tokio::test]
async fn a_picture_of_a_tool_is_in_its_outcome() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    local(&server).answer(&picture_of_a_tool()).await.unwrap();
    let source = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
    let content = json!([{"type": "text", "text": "seen"}, {"type": "image", "source": source}]);
    assert_eq!(server.seen(0).2["messages"][2]["content"][0]["content"], content);
}

/// RS-09: pictures and files reach the model unchanged.
#[tokio::test]
async fn pictures_and_files_are_sent_with_their_types() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    local(&server).answer(&pictures()).await.unwrap();
    let recorded: Value = serde_json::from_str(include_str!("samples/parts.json")).unwrap();
    assert_eq!(server.seen(0).2["messages"][0]["content"], recorded);
}
