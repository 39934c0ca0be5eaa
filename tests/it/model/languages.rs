//! A job with a tool and a required format, in every provider's protocol.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::Fleet;
use turnstone_worker::model::{ModelDefaults, ProviderConfig, Providers};

/// Returns events in a provider's format.
fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A call of `search`, and then the answer, in Anthropic's format.
fn anthropic(second: bool) -> String {
    let (name, input, reason) = match second {
        false => ("search", "{\"q\": \"turnstone\"}", "tool_use"),
        true => ("final_answer", "{\"birds\": 2}", "tool_use"),
    };
    events(&[
        json!({"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 5, "cache_read_input_tokens": 15, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": name, "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": input}}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ])
}

/// The same in the format of OpenAI's responses.
fn responses(second: bool) -> String {
    let item = match second {
        false => {
            json!({"type": "function_call", "call_id": "t", "name": "search", "arguments": "{\"q\": \"turnstone\"}"})
        }
        true => json!({"type": "message", "content": [{"type": "output_text", "text": "{\"birds\": 2}"}]}),
    };
    let usage =
        json!({"input_tokens": 20, "input_tokens_details": {"cached_tokens": 15}, "output_tokens": 7});
    events(&[json!({"type": "response.completed",
                    "response": {"status": "completed", "model": "c", "output": [item], "usage": usage}})])
}

/// A provider that answers by the number of requests.
struct Provider {
    url: String,
    seen: Arc<Mutex<Vec<Value>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Provider {
    async fn start(answer: fn(bool) -> String) -> Self {
        let seen = Arc::<Mutex<Vec<Value>>>::default();
        let respond = move |State(seen): State<Arc<Mutex<Vec<Value>>>>, body: Bytes| async move {
            let mut seen = seen.lock().unwrap();
            seen.push(serde_json::from_slice(&body).unwrap());
            ([(CONTENT_TYPE, "text/event-stream")], answer(seen.len() > 1)).into_response()
        };
        let app = Router::new().route("/v1/{*path}", post(respond)).with_state(Arc::clone(&seen));
        let (url, serving) = turnstone_tests::http::serve(app).await;
        let url = format!("{url}/v1");
        Self { url, seen, _serving: serving }
    }
}

/// Returns the providers of one section.
pub(crate) fn providers(config: Value) -> Providers {
    let config: ProviderConfig = serde_json::from_value(config).unwrap();
    let configs = BTreeMap::from([("test".to_owned(), config)]);
    let defaults = ModelDefaults { provider: Some("test".to_owned()), model: None };
    Providers::from_config(&configs, defaults, Path::new(".")).unwrap()
}

/// Issue 5, "Providers": tools, streaming, structured output, usage incl. cached tokens.
#[tokio::test]
async fn a_job_with_a_tool_and_a_schema_runs_in_every_protocol() {
    for (kind, answer) in [("anthropic", anthropic as fn(bool) -> String), ("openai-responses", responses)] {
        let provider = Provider::start(answer).await;
        let mut fleet = Fleet::builder().workers(0).start().await;
        let providers = providers(json!({"kind": kind, "base_url": provider.url}));
        fleet.add_worker_with(4, |mut deps| {
            deps.providers = providers;
            deps
        });
        let id = fleet
            .push(&json!({"type": "agent.count", "args": ["How many birds?"], "ext_agent_model": "c",
                          "ext_agent_tools": [{"name": "search"}], "ext_agent_token_budget": 100_000,
                          "ext_agent_output_schema": {"type": "object", "required": ["birds"]}}))
            .await;
        let done = fleet.settled(&id).await;
        assert_eq!(
            (&done["state"], &done["result"]),
            (&json!("completed"), &json!({"birds": 2})),
            "{kind}: {done:#}"
        );
        assert_eq!(done["ext_agent_tokens_used"], 54, "{kind}");
        assert_eq!(fleet.tools.calls().len(), 1, "{kind}");
        let seen = provider.seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 2, "{kind}");
        assert!(seen[1].to_string().contains("turnstone"), "{kind}: the call is sent with its outcome");
        fleet.end().await;
    }
}
