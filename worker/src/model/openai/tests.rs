//! The provider against a real server.

use super::*;
use crate::model::http::fixture::{Server, broken, events, listener, pieces, provider, request};
use crate::model::http::{HttpModel, HttpProviderConfig};
use crate::model::{Model as _, ModelAnswer, ModelError, Usage};
use crate::tool::outbound;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde_json::json;
use std::io;
use std::time::Duration;

fn local(server: &Server) -> HttpModel {
    with(server, json!({}))
}

fn with(server: &Server, settings: Value) -> HttpModel {
    provider(server, Box::new(ChatCompletions::default()), settings)
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
    let answer = local(&server).answer(&ModelRequest { listener, ..request() }).await.unwrap();
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
    let answer = local(&server).answer(&request()).await.unwrap();
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
    let answer = local(&server).answer(&request()).await.unwrap();
    assert_eq!((answer.content, answer.tool_calls[0].name.as_str()), (None, "get.weather"));
    assert_eq!((answer.usage, answer.model.as_str()), (Some(Usage::of(3, 4)), "m"));
}

/// Returns the error of a call to a server that answers so.
async fn error_of<A, F>(answer: A) -> ModelError
where
    A: Fn() -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send,
{
    local(&Server::start(answer).await).answer(&request()).await.unwrap_err()
}

#[tokio::test]
async fn refusals_of_the_provider_say_what_the_turn_does_next() {
    let busy = error_of(|| async {
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "2")], "{\"error\":{\"message\":\"slow down\"}}")
            .into_response()
    });
    let message = "provider local: status 429: slow down".into();
    assert_eq!(busy.await, ModelError::RateLimited { message, retry_after_ms: Some(2000) });
    let down = error_of(|| async { (StatusCode::INTERNAL_SERVER_ERROR, "oops").into_response() });
    assert_eq!(down.await, ModelError::Unavailable("provider local: status 500: oops".into()));
    let strict = error_of(|| async {
        (StatusCode::BAD_REQUEST, Json(json!({"error": {"message": "bad schema"}}))).into_response()
    });
    assert_eq!(strict.await, ModelError::Refused("provider local: status 400: bad schema".into()));
    let failed = error_of(|| async {
        let error = "data: {\"error\":{\"code\":503,\"message\":\"overloaded\"}}\n\n";
        events(Body::from(chunk(json!({"content": "18"}), None) + error))
    });
    assert_eq!(failed.await, ModelError::Unavailable("provider local: status 503: overloaded".into()));
}

#[tokio::test]
async fn an_answer_that_was_complete_needs_no_more_of_the_stream() {
    let complete =
        Server::start(|| async { events(broken(chunk(json!({"content": "18"}), Some("stop")))) }).await;
    let answer = local(&complete).answer(&request()).await.unwrap();
    assert_eq!((answer.content.as_deref(), answer.usage), (Some("18"), None));
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
        let error = local(server).answer(&request).await.unwrap_err();
        assert!(matches!(&error, ModelError::Timeout(text) if text.contains("100 ms")), "{error:?}");
    }
}

#[tokio::test]
async fn nonsense_is_malformed() {
    let html = error_of(|| async { "<html>welcome to the hotel network</html>".into_response() }).await;
    assert!(matches!(&html, ModelError::Malformed(text) if text.contains("hotel")), "{html:?}");
    let binary = error_of(|| async { events(Body::from(vec![b'd', 0xff, 0xfe, b'\n', b'\n'])) }).await;
    assert!(matches!(&binary, ModelError::Malformed(_)), "{binary:?}");
    let repeated =
        |piece: Bytes| Body::from_stream(stream::repeat_with(move || Ok::<_, io::Error>(piece.clone())));
    let long =
        move || async move { events(repeated(chunk(json!({"content": "y".repeat(1000)}), None).into())) };
    let huge = || async { "z".repeat(10 * 1024 * 1024).into_response() };
    let endless = move || async move { events(repeated(vec![b'x'; 64 * 1024].into())) };
    for error in [error_of(long).await, error_of(huge).await, error_of(endless).await] {
        assert!(matches!(&error, ModelError::Malformed(text) if text.contains("larger")), "{error:?}");
    }
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
        let answer = local(&server).answer(&request()).await.unwrap();
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
    let model = with(&server, json!({"api_key": format!("file:{}", file.display())}));
    let error = model.answer(&request()).await.unwrap_err();
    assert_eq!(error, ModelError::Refused("provider local: status 401: no such key: ***".into()));
    assert_eq!(server.seen(0).1["authorization"], "Bearer kestrel-9000-key");
    assert!(!format!("{model:?}").contains("kestrel"));
    std::fs::remove_file(&file).unwrap();
    assert!(
        matches!(model.answer(&request()).await, Err(ModelError::Refused(text)) if text.contains("api_key"))
    );
}

#[tokio::test]
async fn an_absent_server_is_unavailable() {
    // A bound socket that does not listen: no other process takes the port, and a connection is refused.
    let absent = tokio::net::TcpSocket::new_v4().unwrap();
    absent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let base_url = format!("http://{}", absent.local_addr().unwrap());
    let config = HttpProviderConfig { base_url: Some(base_url), ..Default::default() };
    let api = Box::new(ChatCompletions::default());
    let model = HttpModel::new("gone", api, config, outbound::open_client().unwrap()).unwrap();
    let error = model.answer(&request()).await.unwrap_err();
    let ModelError::Unreached(unreached) = &error else { panic!("{error:?}") };
    assert_eq!((unreached.provider.as_str(), unreached.problem.as_str()), ("gone", "connection refused"));
    assert_eq!(unreached.address, format!("http://{}", absent.local_addr().unwrap()));
    assert!(error.to_string().contains("cannot connect: connection refused at http://127.0.0.1"), "{error}");

    let base_url = Some("http://no-such-host.invalid/v1".to_owned());
    let config = HttpProviderConfig { base_url, ..Default::default() };
    let api = Box::new(ChatCompletions::default());
    let model = HttpModel::new("nowhere", api, config, outbound::open_client().unwrap()).unwrap();
    let error = model.answer(&request()).await.unwrap_err();
    let ModelError::Unreached(unreached) = &error else { panic!("{error:?}") };
    assert_eq!(unreached.to_string(), "provider nowhere: unknown host at http://no-such-host.invalid");
}

fn assembled(chunks: &[Value]) -> Result<ModelAnswer, String> {
    let mut answer = PartialAnswer::default();
    for chunk in chunks {
        ChatCompletions::default().absorb(&mut answer, chunk, &Listener::default())?;
    }
    answer.finish(&WireNames::default(), "local", "asked")
}

fn delta(calls: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
}

fn calls(answer: &ModelAnswer) -> Vec<(&str, String)> {
    answer.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.to_string())).collect()
}

#[test]
fn interleaved_calls_are_assembled_by_index() {
    let answer = assembled(&[
        delta(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}}])),
        delta(json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}])),
        delta(json!([{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"name": "g", "arguments": "oops"}}])),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ])
    .unwrap();
    assert_eq!(calls(&answer), [("f", "{\"x\":1}".to_owned()), ("g", "\"oops\"".to_owned())]);
    assert_eq!(
        (answer.finish_reason, answer.content, answer.model.as_str()),
        (FinishReason::ToolUse, None, "asked")
    );
}

#[test]
fn servers_that_forget_the_index_or_repeat_it_are_understood() {
    let forgotten = assembled(&[
        delta(json!([{"id": "a", "function": {"name": "f", "arguments": "{"}}])),
        delta(json!([{"function": {"arguments": "}"}}])),
        delta(json!([{"id": "b", "function": {"name": "f", "arguments": {"y": 2}}}])),
    ])
    .unwrap();
    assert_eq!(calls(&forgotten), [("f", "{}".to_owned()), ("f", "{\"y\":2}".to_owned())]);
    let repeated = assembled(&[
        delta(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
        delta(json!([{"index": 0, "id": "b", "function": {"name": "g"}}])),
        delta(json!([{"index": 0, "function": {"arguments": "[1]"}}])),
    ])
    .unwrap();
    assert_eq!(calls(&repeated), [("f", "{}".to_owned()), ("g", "[1]".to_owned())]);
}

#[test]
fn odd_usage_is_passed_on_and_nonsense_is_none() {
    let of = |usage: Value| {
        assembled(&[json!({"choices": [{"message": {"content": "x"}}], "usage": usage})]).unwrap().usage
    };
    assert_eq!(of(json!({"prompt_tokens": 3, "completion_tokens": -4})), Some(Usage::of(3, -4)));
    assert_eq!(of(json!({"prompt_tokens": 1.2, "completion_tokens": 1e300})), Some(Usage::of(2, i64::MAX)));
    assert_eq!(of(json!({"prompt_tokens": u64::MAX, "completion_tokens": 0})), Some(Usage::of(i64::MAX, 0)));
    let reported = json!({"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8},
                      "completion_tokens_details": {"reasoning_tokens": 4}});
    assert_eq!(of(reported), Some(Usage { input: 9, cached_input: 8, output: 5, reasoning: 4 }));
    assert_eq!(of(json!({"prompt_tokens": "3", "completion_tokens": 4})), None);
    assert_eq!(of(Value::Null), None);
    for total in
        [json!({"total_tokens": 12, "prompt_tokens": 9}), json!({"total_tokens": 12, "completion_tokens": 3})]
    {
        assert_eq!(of(total), Some(Usage::of(9, 3)));
    }
    assert_eq!(of(json!({"total_tokens": 12})), Some(Usage::of(1, 11)));
}

#[test]
fn usage_is_found_in_the_places_where_servers_put_it() {
    let (real, zero) = (
        json!({"prompt_tokens": 9, "completion_tokens": 5}),
        json!({"prompt_tokens": 0, "completion_tokens": 0}),
    );
    let text = json!({"content": "x"});
    for chunk in [
        json!({"choices": [{"message": text, "usage": real}]}),
        json!({"choices": [{"message": text, "usage": real}], "usage": null}),
        json!({"choices": [{"message": text, "usage": real}], "usage": zero}),
        json!({"choices": [{"delta": {"content": "x", "usage": real}}]}),
        json!({"choices": [{"message": {"content": "x", "usage": real}}]}),
        json!({"choices": [{"delta": text}], "x_groq": {"usage": real}}),
    ] {
        let last = json!({"choices": [], "usage": zero});
        assert_eq!(
            assembled(&[chunk.clone(), last]).unwrap().usage,
            Some(Usage::of(9, 5)),
            "{chunk}, then zero"
        );
        assert_eq!(assembled(std::slice::from_ref(&chunk)).unwrap().usage, Some(Usage::of(9, 5)), "{chunk}");
    }
}

#[test]
fn refusals_and_truncations_are_distinguished() {
    let of = |message: Value, reason: &str| {
        assembled(&[json!({"choices": [{"message": message, "finish_reason": reason}]})]).unwrap()
    };
    let refused = of(json!({"content": null, "refusal": "I will not"}), "stop");
    assert_eq!(
        (refused.finish_reason, refused.content.as_deref()),
        (FinishReason::ContentFilter, Some("I will not"))
    );
    assert_eq!(of(json!({"content": "ab"}), "length").finish_reason, FinishReason::Length);
    assert_eq!(
        of(json!({"content": [{"type": "text", "text": "ab"}]}), "stop").content.as_deref(),
        Some("ab")
    );
    for (word, reason) in [
        ("eos", FinishReason::Stop),
        ("model_length", FinishReason::Length),
        ("function_call", FinishReason::Stop),
        ("safety", FinishReason::ContentFilter),
    ] {
        assert_eq!(of(json!({"content": "ab"}), word).finish_reason, reason, "{word}");
    }
    let unknown = json!({"choices": [{"message": {"content": "Pay 100"}, "finish_reason": "novel_reason"}]});
    assert!(assembled(&[unknown]).unwrap_err().contains("`novel_reason`"));
}

/// Servers that say index 0 for every call, and give no ids: a whole object ends a call, and another name begins one.
#[test]
fn parallel_calls_without_index_and_id_are_kept_apart() {
    let piece = |name: Value, arguments: &str| {
        delta(json!([{"index": 0, "function": {"name": name, "arguments": arguments}}]))
    };
    let found = assembled(&[
        piece(json!("f"), "{\"x\": 1}"),
        piece(json!("f"), "{\"x\": 2}"),
        piece(json!("g"), ""),
        piece(Value::Null, "{\"y\": "),
        piece(json!("g"), "3}"),
        piece(json!("g"), ""),
        piece(json!("h"), "{}"),
    ]);
    let found = found.unwrap();
    let arguments = ["{\"x\":1}", "{\"x\":2}", "{\"y\":3}", "{}"].map(str::to_owned);
    let names = ["f", "f", "g", "h"];
    assert_eq!(calls(&found), names.into_iter().zip(arguments).collect::<Vec<_>>());
    let whole = json!([{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "f", "arguments": "{}"}}]);
    assert_eq!(calls(&assembled(&[delta(whole)]).unwrap()).len(), 2);
}

/// An empty line of data, a character whose halves come apart, a lone half and NUL end no answer.
#[tokio::test]
async fn text_that_cannot_be_stored_is_mended() {
    let server = Server::start(|| async {
        let said = |text: &str| {
            format!("data: {{\"choices\": [{{\"index\": 0, \"delta\": {{\"content\": \"{text}\"}}}}]}}\n\n")
        };
        let call = r#"data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "a", "function":
            {"name": "look\u0000up", "arguments": "{\"q\": \"\\udc00\\u0000\"}"}}]}}]}"#;
        let text = [
            "data:\n\n".to_owned(),
            said("Low \\ud83c"),
            "data: \n\n".to_owned(),
            said("\\udf0a tide\\ud83c"),
            said("\\u0000"),
            format!("{}\n\n", call.replace('\n', "")),
            chunk(json!({}), Some("tool_calls")),
            "data: [DONE]\n\n".to_owned(),
        ];
        events(pieces(text.concat(), 7))
    })
    .await;
    let answer = local(&server).answer(&request()).await.unwrap();
    assert_eq!(answer.content.as_deref(), Some("Low 🌊 tide\u{FFFD}\u{FFFD}"));
    let arguments = json!({"q": "\u{FFFD}\u{FFFD}"}).to_string();
    assert_eq!(calls(&answer), [("look\u{FFFD}up", arguments)]);
}

#[test]
fn an_answer_without_substance_is_an_error() {
    assert!(assembled(&[json!({"object": "list"})]).unwrap_err().contains("no message"));
    assert!(
        assembled(&[delta(json!([{"index": 0, "function": {"arguments": "{}"}}]))])
            .unwrap_err()
            .contains("naming")
    );
    let many: Vec<Value> = (0..200).map(|index| json!({"index": index, "function": {"name": "f"}})).collect();
    assert!(assembled(&[delta(Value::Array(many))]).unwrap_err().contains("128"));
}
