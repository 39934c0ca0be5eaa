//! The provider against a real server.

use super::*;
use crate::model::http::fixture::{
    Server, assert_times_out, broken, events, listener, pictures, pieces, replay, request, summary, tides,
};
use crate::model::{FinishReason, Model as _, ModelError, Usage};
use crate::tool::outbound;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

fn provider(server: &Server) -> OpenAiModel {
    let config = OpenAiConfig { base_url: server.base_url.clone(), ..OpenAiConfig::default() };
    OpenAiModel::new("local", config, outbound::open_client().unwrap()).unwrap()
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"model": "served", "choices": [choice]}))
}

fn usage_chunk(input: i64, output: i64) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}})
    )
}

#[tokio::test]
async fn a_streamed_text_is_joined_and_its_usage_read() {
    let server = Server::start(|| async {
        let text = [
            chunk(json!({"role": "assistant", "content": null}), None),
            ": a comment\n\n".to_owned(),
            chunk(json!({"content": "18 °C "}), None),
            chunk(json!({"content": "in Zürich"}), None),
            chunk(json!({}), Some("stop")),
            usage_chunk(146, 17),
            "data: [DONE]\n\n".to_owned(),
        ];
        events(pieces(text.concat(), 7))
    })
    .await;
    let (listener, heard) = listener();
    let answer = provider(&server).answer(&ModelRequest { listener, ..request() }).await.unwrap();
    assert_eq!(answer.content.as_deref(), Some("18 °C in Zürich"));
    assert_eq!(*heard.lock().unwrap(), ["18 °C ", "in Zürich"]);
    assert_eq!((answer.finish_reason, answer.usage), (FinishReason::Stop, Some(Usage::of(146, 17))));
    assert_eq!(answer.model, "served");
    let (path, headers, body) = server.seen(0);
    assert_eq!(path, "/v1/chat/completions");
    assert!(headers.get("authorization").is_none());
    assert_eq!(
        (&body["stream"], &body["max_tokens"], &body["model"]),
        (&json!(true), &json!(100), &json!("m"))
    );
}

#[tokio::test]
async fn streamed_tool_calls_are_assembled_and_named_as_ours() {
    let server = Server::start(|| async {
        let piece = |index: usize, id: Option<&str>, name: Option<&str>, arguments: &str| {
            let call = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            chunk(json!({"tool_calls": [call]}), None)
        };
        let text = [
            piece(0, Some("a"), Some("get_weather"), "{"),
            piece(0, None, None, "\"city\":"),
            piece(0, None, None, "\"Paris\"}"),
            piece(1, Some("b"), Some("unknown"), "not json"),
            chunk(json!({}), Some("tool_calls")),
            usage_chunk(9, 8),
            "data: [DONE]\n\n".to_owned(),
        ];
        events(pieces(text.concat(), 64))
    })
    .await;
    let answer = provider(&server).answer(&request()).await.unwrap();
    assert_eq!(answer.finish_reason, FinishReason::ToolUse);
    let calls: Vec<_> =
        answer.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
    assert_eq!(calls, [("get.weather", json!({"city": "Paris"})), ("unknown", json!("not json"))]);
    assert_eq!(server.seen(0).2["tools"][0]["function"]["name"], "get_weather");
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let server = Server::start(|| async {
        let call = json!({"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}});
        let choice = json!({"index": 0, "message": {"content": "", "tool_calls": [call]}, "finish_reason": "tool_calls"});
        Json(json!({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 4}})).into_response()
    })
    .await;
    let answer = provider(&server).answer(&request()).await.unwrap();
    assert_eq!((answer.content, answer.tool_calls[0].name.as_str()), (None, "get.weather"));
    assert_eq!((answer.usage, answer.model.as_str()), (Some(Usage::of(3, 4)), "m"));
}

#[tokio::test]
async fn refusals_of_the_provider_say_what_the_turn_does_next() {
    let busy = Server::start(|| async {
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "2")], "{\"error\":{\"message\":\"slow down\"}}")
            .into_response()
    })
    .await;
    let error = provider(&busy).answer(&request()).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::RateLimited {
            message: "provider local: status 429: slow down".into(),
            retry_after_ms: Some(2000)
        }
    );
    let down = Server::start(|| async { (StatusCode::INTERNAL_SERVER_ERROR, "oops").into_response() }).await;
    let error = provider(&down).answer(&request()).await.unwrap_err();
    assert_eq!(error, ModelError::Unavailable("provider local: status 500: oops".into()));
    let strict = Server::start(|| async {
        (StatusCode::BAD_REQUEST, Json(json!({"error": {"message": "bad schema"}}))).into_response()
    })
    .await;
    let error = provider(&strict).answer(&request()).await.unwrap_err();
    assert_eq!(error, ModelError::Refused("provider local: status 400: bad schema".into()));
}

#[tokio::test]
async fn a_lost_stream_is_unavailable_unless_the_answer_was_complete() {
    let half = Server::start(|| async { events(broken(chunk(json!({"content": "18"}), None))) }).await;
    assert!(
        matches!(provider(&half).answer(&request()).await, Err(ModelError::Unavailable(text)) if text.contains("lost"))
    );
    let ended = Server::start(|| async { events(Body::from(chunk(json!({"content": "18"}), None))) }).await;
    assert!(
        matches!(provider(&ended).answer(&request()).await, Err(ModelError::Unavailable(text)) if text.contains("ended"))
    );
    let complete =
        Server::start(|| async { events(broken(chunk(json!({"content": "18"}), Some("stop")))) }).await;
    let answer = provider(&complete).answer(&request()).await.unwrap();
    assert_eq!((answer.content.as_deref(), answer.usage), (Some("18"), None));
    let failed = Server::start(|| async {
        let error = "data: {\"error\":{\"code\":503,\"message\":\"overloaded\"}}\n\n";
        events(Body::from(chunk(json!({"content": "18"}), None) + error))
    })
    .await;
    assert!(
        matches!(provider(&failed).answer(&request()).await, Err(ModelError::Unavailable(text)) if text.contains("overloaded"))
    );
}

#[tokio::test]
async fn a_slow_answer_times_out_even_when_it_trickles() {
    let silent = Server::start(std::future::pending).await;
    let trickle = Server::start(|| async {
        let first = stream::iter([Ok::<_, io::Error>(Bytes::from(chunk(json!({"content": "1"}), None)))]);
        events(Body::from_stream(first.chain(stream::pending())))
    })
    .await;
    for server in [&silent, &trickle] {
        let request = ModelRequest { timeout: Duration::from_millis(100), ..request() };
        let error = provider(server).answer(&request).await.unwrap_err();
        assert!(matches!(&error, ModelError::Timeout(text) if text.contains("100 ms")), "{error:?}");
    }
    assert_times_out::<OpenAiConfig>().await;
}

#[tokio::test]
async fn nonsense_is_malformed() {
    let html = Server::start(|| async { "<html>welcome to the hotel network</html>".into_response() }).await;
    let error = provider(&html).answer(&request()).await.unwrap_err();
    assert!(matches!(&error, ModelError::Malformed(text) if text.contains("hotel")), "{error:?}");
    let broken = Server::start(|| async { events(Body::from("data: {oops\n\n")) }).await;
    assert!(matches!(provider(&broken).answer(&request()).await, Err(ModelError::Malformed(_))));
    let empty = Server::start(|| async { Json(json!({"object": "list"})).into_response() }).await;
    assert!(matches!(provider(&empty).answer(&request()).await, Err(ModelError::Malformed(_))));
    let binary = Server::start(|| async { events(Body::from(vec![b'd', 0xff, 0xfe, b'\n', b'\n'])) }).await;
    assert!(matches!(provider(&binary).answer(&request()).await, Err(ModelError::Malformed(_))));
    let long = Server::start(|| async {
        let piece = Bytes::from(chunk(json!({"content": "y".repeat(1000)}), None));
        events(Body::from_stream(stream::repeat_with(move || Ok::<_, io::Error>(piece.clone()))))
    })
    .await;
    assert!(
        matches!(provider(&long).answer(&request()).await, Err(ModelError::Malformed(text)) if text.contains("larger"))
    );
    let huge = Server::start(|| async { "z".repeat(10 * 1024 * 1024).into_response() }).await;
    assert!(
        matches!(provider(&huge).answer(&request()).await, Err(ModelError::Malformed(text)) if text.contains("larger"))
    );
    let endless = Server::start(|| async {
        let line = Bytes::from(vec![b'x'; 64 * 1024]);
        events(Body::from_stream(stream::repeat_with(move || Ok::<_, io::Error>(line.clone()))))
    })
    .await;
    assert!(
        matches!(provider(&endless).answer(&request()).await, Err(ModelError::Malformed(text)) if text.contains("larger"))
    );
}

#[tokio::test]
async fn a_byte_order_mark_does_no_harm() {
    for size in [1, 2, 4096] {
        let server = Server::start(move || async move {
            let text = format!(
                "\u{feff}{}{}",
                chunk(json!({"content": "a"}), None),
                chunk(json!({"content": "b"}), Some("stop"))
            );
            events(pieces(text, size))
        })
        .await;
        let answer = provider(&server).answer(&request()).await.unwrap();
        assert_eq!(answer.content.as_deref(), Some("ab"), "pieces of {size}");
    }
}

#[tokio::test]
async fn a_key_is_sent_as_a_header_and_shown_nowhere() {
    let server = Server::start(|| async {
        (StatusCode::UNAUTHORIZED, Json(json!({"error": {"message": "no such key: kestrel-9000-key"}})))
            .into_response()
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, "kestrel-9000-key\n").unwrap();
    let config: OpenAiConfig = serde_json::from_value(
        json!({"base_url": server.base_url, "api_key": format!("file:{}", file.display())}),
    )
    .unwrap();
    let model = OpenAiModel::new("paid", config.clone(), outbound::open_client().unwrap()).unwrap();
    let error = model.answer(&request()).await.unwrap_err();
    assert_eq!(error, ModelError::Refused("provider paid: status 401: no such key: ***".into()));
    assert_eq!(server.seen(0).1["authorization"], "Bearer kestrel-9000-key");
    assert!(!format!("{model:?}").contains("kestrel"));
    std::fs::remove_file(&file).unwrap();
    assert!(
        matches!(model.answer(&request()).await, Err(ModelError::Refused(text)) if text.contains("api_key"))
    );
    assert!(
        OpenAiModel::new("paid", config, outbound::open_client().unwrap()).unwrap_err().contains("api_key")
    );
}

#[tokio::test]
async fn an_absent_server_is_unavailable() {
    // A bound socket that does not listen: no other process takes the port, and a connection is refused.
    let absent = tokio::net::TcpSocket::new_v4().unwrap();
    absent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let base_url = format!("http://{}", absent.local_addr().unwrap());
    let config = OpenAiConfig { base_url, ..OpenAiConfig::default() };
    let model = OpenAiModel::new("gone", config, outbound::open_client().unwrap()).unwrap();
    let error = model.answer(&request()).await.unwrap_err();
    assert!(matches!(&error, ModelError::Unavailable(text) if text.contains("cannot connect")), "{error:?}");
}

#[tokio::test]
async fn the_recorded_request_and_answers_are_ours() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    let answer = provider(&server).answer(&tides()).await.unwrap();
    let recorded: Value = serde_json::from_str(include_str!("samples/request.json")).unwrap();
    assert_eq!(server.seen(0).2, recorded);
    let text = "Low tide is at 14:07 – bring boots.";
    assert_eq!(summary(&answer), json!([text, [], "stop", [1180, 1024, 24, 9], "gpt-sample-2026"]));
    let calls = json!([["get.tide", {"harbour": "Husum"}], ["get.tide", "{\"harbour\": \"Hus"]]);
    for (sample, expected) in [
        (
            include_str!("samples/tools.sse"),
            json!([null, calls, "tool_use", [210, 0, 38, 0], "gpt-sample-2026"]),
        ),
        (
            include_str!("samples/whole.json"),
            json!(["Low tide is at 14:07.", [], "length", [96, 0, 12, 0], "gpt-sample-2026"]),
        ),
        (
            include_str!("samples/filtered.json"),
            json!([
                "I cannot help with poaching seals.",
                [],
                "content_filter",
                [50, 0, 0, 0],
                "gpt-sample-2026"
            ]),
        ),
    ] {
        let server = replay(200, sample).await;
        assert_eq!(summary(&provider(&server).answer(&tides()).await.unwrap()), expected);
    }
    let failed = replay(200, include_str!("samples/failed.sse")).await;
    let error = provider(&failed).answer(&request()).await.unwrap_err();
    assert!(matches!(&error, ModelError::Unavailable(text) if text.contains("had an error")), "{error:?}");
    let busy = replay(429, include_str!("samples/busy.json")).await;
    let error = provider(&busy).answer(&request()).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::RateLimited { message, .. } if message.contains("per min")),
        "{error:?}"
    );
}

/// RS-09: pictures and files reach the model unchanged.
#[tokio::test]
async fn pictures_and_files_are_sent_with_their_types() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    provider(&server).answer(&pictures()).await.unwrap();
    let recorded: Value = serde_json::from_str(include_str!("samples/parts.json")).unwrap();
    assert_eq!(server.seen(0).2["messages"][0]["content"], recorded);
}
