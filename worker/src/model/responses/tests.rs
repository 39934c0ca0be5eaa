//! The provider against a real server that replays recorded answers.

use super::*;
use crate::model::http::fixture::{
    Server, assert_heard, assert_times_out, broken, events, failed, picture_of_a_tool, pictures, provider,
    replay, request, tides,
};
use crate::model::{Model as _, ModelError};
use serde_json::json;
use std::sync::Arc;

fn local(server: &Server) -> ResponsesModel {
    provider(server, json!({}))
}

async fn answered(sample: &'static str) -> Value {
    crate::model::http::fixture::answered::<ResponsesConfig>(sample).await
}

#[tokio::test]
async fn a_conversation_is_sent_in_the_providers_format() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    local(&server).answer(&tides()).await.unwrap();
    let (path, headers, body) = server.seen(0);
    assert_eq!(path, "/v1/responses");
    assert!(headers.get("authorization").is_none());
    let recorded: Value = serde_json::from_str(include_str!("samples/request.json")).unwrap();
    assert_eq!(body, recorded);

    let prompted: ResponsesModel = provider(&server, json!({"structured_output": "prompt"}));
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
    assert_heard::<ResponsesConfig>(include_str!("samples/text.sse")).await;
}

#[tokio::test]
async fn failures_say_what_the_turn_does_next() {
    let error = failed::<ResponsesConfig>(200, include_str!("samples/failed.sse")).await;
    assert!(
        matches!(&error, ModelError::Unavailable(text) if text.contains("failed to generate")),
        "{error:?}"
    );
    let error = failed::<ResponsesConfig>(200, include_str!("samples/busy.sse")).await;
    assert!(
        matches!(&error, ModelError::RateLimited { message, .. } if message.contains("Rate limit")),
        "{error:?}"
    );
    for nonsense in ["{\"object\": \"list\"}", "{\"status\": \"queued\"}", "data: {oops\n\n"] {
        let error = failed::<ResponsesConfig>(200, nonsense).await;
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
        let error = local(&server).answer(&request()).await.unwrap_err();
        assert!(matches!(&error, ModelError::Unavailable(_)), "{error:?}");
    }
    assert_times_out::<ResponsesConfig>().await;
}

/// Issue 16: a picture of a tool is part of its outcome.
#[tokio::test]
async fn a_picture_of_a_tool_is_in_its_outcome() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    local(&server).answer(&picture_of_a_tool()).await.unwrap();
    let output = json!([{"type": "input_text", "text": "seen"},
                        {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]);
    assert_eq!(server.seen(0).2["input"][2]["output"], output);
}

/// RS-09: pictures and files reach the model unchanged.
#[tokio::test]
async fn pictures_and_files_are_sent_with_their_types() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    local(&server).answer(&pictures()).await.unwrap();
    let recorded: Value = serde_json::from_str(include_str!("samples/parts.json")).unwrap();
    assert_eq!(server.seen(0).2["input"][0]["content"], recorded);
}
