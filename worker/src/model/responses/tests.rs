//! The provider against a real server that replays recorded answers.

use super::*;
use crate::model::http::fixture::{
    Server, broken, events, listener, picture_of_a_tool, pictures, replay, request, summary, tides,
};
use crate::tool::outbound;
use serde_json::{Value, json};
use std::time::Duration;

fn config(server: &Server, more: Value) -> ResponsesConfig {
    let mut config = json!({"base_url": server.base_url});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(config).unwrap()
}

fn provider(server: &Server) -> ResponsesModel {
    ResponsesModel::new("local", config(server, json!({})), outbound::open_client().unwrap()).unwrap()
}

async fn answered(sample: &'static str) -> Value {
    let server = replay(200, sample).await;
    summary(&provider(&server).answer(&tides()).await.unwrap())
}

async fn failed(status: u16, sample: &'static str) -> ModelError {
    let server = replay(status, sample).await;
    provider(&server).answer(&request()).await.unwrap_err()
}

#[tokio::test]
async fn a_conversation_is_sent_in_the_providers_format() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    provider(&server).answer(&tides()).await.unwrap();
    let (path, headers, body) = server.seen(0);
    assert_eq!(path, "/v1/responses");
    assert!(headers.get("authorization").is_none());
    let recorded: Value = serde_json::from_str(include_str!("samples/request.json")).unwrap();
    assert_eq!(body, recorded);

    let prompted = config(&server, json!({"structured_output": "prompt"}));
    let prompted = ResponsesModel::new("local", prompted, outbound::open_client().unwrap()).unwrap();
    prompted.answer(&tides()).await.unwrap();
    assert!(server.seen(1).2.get("text").is_none());
}

#[tokio::test]
async fn recorded_answers_are_understood() {
    let text = "Low tide is at 14:07 – bring boots.";
    assert_eq!(
        answered(include_str!("samples/text.sse")).await,
        json!([text, [], "stop", [1180, 1024, 24, 9], "gpt-sample-2026"])
    );
    let calls = json!([["get.tide", {"harbour": "Husum"}], ["get.tide", "{\"harbour\": \"Hus"]]);
    assert_eq!(
        answered(include_str!("samples/tools.sse")).await,
        json!([null, calls, "tool_use", [210, 0, 38, 0], "gpt-sample-2026"])
    );
    assert_eq!(
        answered(include_str!("samples/whole.json")).await,
        json!(["Low tide is at 14:07.", [], "length", [96, 0, 12, 0], "gpt-sample-2026"])
    );
    assert_eq!(
        answered(include_str!("samples/filtered.json")).await,
        json!(["I cannot help with poaching seals.", [], "content_filter", [50, 0, 7, 0], "gpt-sample-2026"])
    );
}

#[tokio::test]
async fn the_text_is_heard_while_it_is_written() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    let (listener, heard) = listener();
    provider(&server).answer(&ModelRequest { listener, ..tides() }).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), ["Low tide", " is at 14:07", " – bring boots."]);
}

#[tokio::test]
async fn failures_say_what_the_turn_does_next() {
    let error = failed(200, include_str!("samples/failed.sse")).await;
    assert!(
        matches!(&error, ModelError::Unavailable(text) if text.contains("failed to generate")),
        "{error:?}"
    );
    let error = failed(200, include_str!("samples/busy.sse")).await;
    assert!(
        matches!(&error, ModelError::RateLimited { message, .. } if message.contains("Rate limit")),
        "{error:?}"
    );
    for nonsense in ["{\"object\": \"list\"}", "{\"status\": \"queued\"}", "data: {oops\n\n"] {
        let error = failed(200, nonsense).await;
        assert!(matches!(&error, ModelError::Malformed(_)), "{nonsense}: {error:?}");
    }
}

#[tokio::test]
async fn only_a_stream_that_came_to_its_end_is_an_answer() {
    let whole = include_str!("samples/text.sse");
    let (cut, _) = whole.split_once("event: response.completed").unwrap();
    for body in [events(cut.to_owned()), events(broken(cut))] {
        let body = Arc::new(std::sync::Mutex::new(Some(body)));
        let server = Server::start(move || {
            let body = body.lock().unwrap().take().unwrap();
            async move { body }
        })
        .await;
        let error = provider(&server).answer(&request()).await.unwrap_err();
        assert!(matches!(&error, ModelError::Unavailable(_)), "{error:?}");
    }
    let silent = Server::start(std::future::pending).await;
    let hasty = config(&silent, json!({"timeout_ms": 50}));
    let hasty = ResponsesModel::new("hasty", hasty, outbound::open_client().unwrap()).unwrap();
    let request = ModelRequest { timeout: Duration::from_secs(20), ..request() };
    let error = hasty.answer(&request).await.unwrap_err();
    assert!(matches!(&error, ModelError::Timeout(text) if text.contains("50 ms")), "{error:?}");
}

/// Issue 16: a picture of a tool is part of its outcome.
#[tokio::test]
async fn a_picture_of_a_tool_is_in_its_outcome() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    provider(&server).answer(&picture_of_a_tool()).await.unwrap();
    let output = json!([{"type": "input_text", "text": "seen"},
                        {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]);
    assert_eq!(server.seen(0).2["input"][2]["output"], output);
}

/// RS-09: pictures and files reach the model unchanged.
#[tokio::test]
async fn pictures_and_files_are_sent_with_their_types() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    provider(&server).answer(&pictures()).await.unwrap();
    let recorded: Value = serde_json::from_str(include_str!("samples/parts.json")).unwrap();
    assert_eq!(server.seen(0).2["input"][0]["content"], recorded);
}
