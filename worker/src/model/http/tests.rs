//! Tests of all APIs, against a real server that replays recorded answers.

use super::fixture::{Server, broken, events, listener, pictures, provider, replay, request, summary, tides};
use super::*;
use crate::model::anthropic::Messages;
use crate::model::openai::ChatCompletions;
use crate::model::responses::Responses;
use crate::model::{Model as _, ModelAnswer, ModelError, ModelRequest};
use crate::tool::outbound;
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_domain::agent::OutputContract;

/// An API with its recorded request and answers. The answers say the same in the format of each API.
struct RecordedReply {
    api: fn() -> Box<dyn Api>,
    path: &'static str,
    request: &'static str,
    /// The parts of a message, and their place in the request.
    parts: (&'static str, &'static str),
    text: &'static str,
    /// The event that ends a stream, from which on it is cut.
    end: &'static str,
    tools: &'static str,
    whole: &'static str,
    /// The ends of the text and of the whole answer, and ends of no complete answer.
    ends: &'static [(&'static str, &'static str)],
    filtered: &'static str,
    failed: (&'static str, &'static str),
    busy: (u16, &'static str, &'static str),
    /// The model, the tokens of reasoning, the text beside calls, and the tokens of the answer that was withheld.
    expected: (&'static str, i64, Option<&'static str>, i64),
}

impl RecordedReply {
    fn at(&self, server: &Server, settings: Value) -> HttpModel {
        provider(server, (self.api)(), settings)
    }

    async fn answer(&self, sample: &'static str) -> ModelAnswer {
        self.at(&replay(200, sample).await, json!({})).answer(&tides()).await.unwrap()
    }

    async fn error(&self, status: u16, sample: &'static str) -> ModelError {
        self.at(&replay(status, sample).await, json!({})).answer(&request()).await.unwrap_err()
    }
}

macro_rules! sample {
    ($api:literal, $name:literal) => {
        include_str!(concat!("../", $api, "/samples/", $name))
    };
}

fn recorded() -> [RecordedReply; 3] {
    [
        RecordedReply {
            api: || Box::new(ChatCompletions::default()),
            path: "/v1/chat/completions",
            request: sample!("openai", "request.json"),
            parts: (sample!("openai", "parts.json"), "/messages/0/content"),
            text: sample!("openai", "text.sse"),
            end: "\"finish_reason\":\"stop\"",
            tools: sample!("openai", "tools.sse"),
            whole: sample!("openai", "whole.json"),
            ends: &[
                (r#""stop""#, r#""error""#),
                (r#""stop""#, r#""weather""#),
                (r#""stop""#, r#""""#),
                (r#""length""#, r#""error""#),
            ],
            filtered: sample!("openai", "filtered.json"),
            failed: (sample!("openai", "failed.sse"), "had an error"),
            busy: (429, sample!("openai", "busy.json"), "per min"),
            expected: ("gpt-sample-2026", 9, None, 0),
        },
        RecordedReply {
            api: || Box::new(Responses),
            path: "/v1/responses",
            request: sample!("responses", "request.json"),
            parts: (sample!("responses", "parts.json"), "/input/0/content"),
            text: sample!("responses", "text.sse"),
            end: "event: response.completed",
            tools: sample!("responses", "tools.sse"),
            whole: sample!("responses", "whole.json"),
            ends: &[
                (r#""status":"completed""#, r#""status":"cancelled""#),
                (r#""reason": "max_output_tokens""#, r#""reason": "weather""#),
            ],
            filtered: sample!("responses", "filtered.json"),
            failed: (sample!("responses", "failed.sse"), "failed to generate"),
            busy: (200, sample!("responses", "busy.sse"), "Rate limit"),
            expected: ("gpt-sample-2026", 9, None, 7),
        },
        RecordedReply {
            api: || Box::new(Messages),
            path: "/v1/messages",
            request: sample!("anthropic", "request.json"),
            parts: (sample!("anthropic", "parts.json"), "/messages/0/content"),
            text: sample!("anthropic", "text.sse"),
            end: "event: message_delta",
            tools: sample!("anthropic", "tools.sse"),
            whole: sample!("anthropic", "whole.json"),
            ends: &[
                (r#""end_turn""#, r#""weather""#),
                (r#""end_turn""#, "null"),
                (r#""max_tokens""#, r#""weather""#),
            ],
            filtered: sample!("anthropic", "filtered.json"),
            failed: (sample!("anthropic", "failed.sse"), "Overloaded"),
            busy: (429, sample!("anthropic", "busy.json"), "per-minute"),
            expected: ("claude-sample-2026", 0, Some("I look it up."), 7),
        },
    ]
}

#[tokio::test]
async fn a_conversation_is_sent_in_the_providers_format() {
    for one in recorded() {
        let server = replay(200, one.text).await;
        one.at(&server, json!({})).answer(&tides()).await.unwrap();
        let (path, headers, body) = server.seen(0);
        assert_eq!(path, one.path);
        assert!(headers.get("authorization").is_none());
        assert_eq!(body, serde_json::from_str::<Value>(one.request).unwrap());
        // Left to the prompt, the form is not demanded from the provider.
        one.at(&server, json!({"structured_output": "prompt"})).answer(&tides()).await.unwrap();
        let free = ModelRequest { output: OutputContract::default(), ..tides() };
        one.at(&server, json!({})).answer(&free).await.unwrap();
        assert_ne!(server.seen(1).2, body);
        assert_eq!(server.seen(1).2, server.seen(2).2);
    }
}

/// RS-09: pictures and files reach the model unchanged.
#[tokio::test]
async fn pictures_and_files_are_sent_with_their_types() {
    for one in recorded() {
        let server = replay(200, one.text).await;
        one.at(&server, json!({})).answer(&pictures()).await.unwrap();
        let (parts, place) = one.parts;
        let parts: Value = serde_json::from_str(parts).unwrap();
        assert_eq!(server.seen(0).2.pointer(place), Some(&parts));
    }
}

#[tokio::test]
async fn recorded_answers_are_understood() {
    for one in recorded() {
        let (model, reasoning, beside, withheld) = one.expected;
        let text = "Low tide is at 14:07 – bring boots.";
        let calls = json!([["get.tide", {"harbour": "Husum"}], ["get.tide", "{\"harbour\": \"Hus"]]);
        let refusal = "I cannot help with poaching seals.";
        for (sample, expected) in [
            (one.text, json!([text, [], "stop", [1180, 1024, 24, reasoning], model])),
            (one.tools, json!([beside, calls, "tool_use", [210, 0, 38, 0], model])),
            (one.whole, json!(["Low tide is at 14:07.", [], "length", [96, 0, 12, 0], model])),
            (one.filtered, json!([refusal, [], "content_filter", [50, 0, withheld, 0], model])),
        ] {
            assert_eq!(summary(&one.answer(sample).await), expected);
        }
    }
}

#[tokio::test]
async fn the_text_is_heard_while_it_is_written() {
    for one in recorded() {
        let server = replay(200, one.text).await;
        let (listener, heard) = listener();
        one.at(&server, json!({})).answer(&ModelRequest { listener, ..tides() }).await.unwrap();
        assert_eq!(*heard.lock().unwrap(), ["Low tide", " is at 14:07", " – bring boots."]);
    }
}

#[tokio::test]
async fn failures_say_what_the_turn_does_next() {
    for one in recorded() {
        let (sample, words) = one.failed;
        let error = one.error(200, sample).await;
        assert!(matches!(&error, ModelError::Unavailable(text) if text.contains(words)), "{error:?}");
        let (status, sample, words) = one.busy;
        let error = one.error(status, sample).await;
        let is_busy = matches!(&error, ModelError::RateLimited { message, .. } if message.contains(words));
        assert!(is_busy, "{error:?}");
        for nonsense in ["{\"object\": \"list\"}", "{\"status\": \"queued\"}", "data: {oops\n\n"] {
            let error = one.error(200, nonsense).await;
            assert!(matches!(&error, ModelError::Malformed(_)), "{nonsense}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_cut_stream_is_no_answer() {
    for one in recorded() {
        let cut = one.text.split_once(one.end).unwrap().0.rsplit_once("\n\n").unwrap().0;
        let ended = Server::start(move || async move { events(format!("{cut}\n\n")) }).await;
        let lost = Server::start(move || async move { events(broken(cut)) }).await;
        let error = one.at(&ended, json!({})).answer(&request()).await.unwrap_err();
        let words = "ended before the answer was complete; until then it said: Low tide is at 14:07";
        assert!(matches!(&error, ModelError::Cut(text) if text.contains(words)), "{error:?}");
        let error = one.at(&lost, json!({})).answer(&request()).await.unwrap_err();
        assert!(matches!(&error, ModelError::Unavailable(text) if text.contains("lost")), "{error:?}");
    }
}

/// An answer that ended for another reason than those of complete answers is an error that keeps its text.
#[tokio::test]
async fn only_known_ends_make_an_answer() {
    for one in recorded() {
        for (good, bad) in one.ends {
            let mut broken = 0;
            for sample in [one.text, one.whole].into_iter().filter(|sample| sample.contains(good)) {
                let server = replay(200, sample.replace(good, bad).leak()).await;
                let error = one.at(&server, json!({})).answer(&tides()).await.unwrap_err();
                let keeps_text = |text: &str| text.contains("Low tide");
                let is_known =
                    matches!(&error, ModelError::Malformed(text) | ModelError::Cut(text) if keeps_text(text));
                assert!(is_known, "{good} as {bad}: {error:?}");
                broken += 1;
            }
            assert!(broken > 0, "no sample ends with {good}");
        }
    }
}

#[tokio::test]
async fn a_call_ends_after_the_providers_own_time() {
    let silent = Server::start(std::future::pending).await;
    for one in recorded() {
        let request = ModelRequest { timeout: Duration::from_secs(20), ..request() };
        let error = one.at(&silent, json!({"timeout_ms": 50})).answer(&request).await.unwrap_err();
        assert!(matches!(&error, ModelError::Timeout(text) if text.contains("50 ms")), "{error:?}");
    }
}

#[test]
fn a_base_url_keeps_its_path_and_query() {
    let base_url = Some("https://a.example/openai/v1/?api-version=1".to_owned());
    let config = HttpProviderConfig { base_url, ..Default::default() };
    let api = Box::new(ChatCompletions::default());
    let model = HttpModel::new("azure", api, config, outbound::open_client().unwrap()).unwrap();
    assert!(format!("{model:?}").contains("/openai/v1/chat/completions"), "{model:?}");
}
