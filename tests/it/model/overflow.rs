//! A prompt that is longer than the model's context.

use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply, model_server};
use turnstone_worker::model::estimates::Estimates;
use turnstone_worker::options::OnContextOverflow;

/// The length from which on a request is too long for the small model.
const CONTEXT: usize = 20_000;

/// A tool's outcome that makes the next request too long, as the model repeats it in its arguments.
fn long() -> Value {
    json!({"text": "x".repeat(12_000)})
}

async fn fleet(on_context_overflow: OnContextOverflow, contexts: &[(&str, i64)]) -> Fleet {
    let script = |request: &Value| {
        let is_small = request["model"] == "small";
        match model_server::outcomes(request) {
            _ if is_small && request["messages"].to_string().len() > CONTEXT => Reply::Said(
                400,
                json!({"error": {"message": "This model's maximum context length is 5000 tokens.",
                                 "code": "context_length_exceeded"}}),
            ),
            0 => Reply::call("search", long()),
            _ => Reply::text(format!("done by {}", request["model"].as_str().unwrap())),
        }
    };
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    let contexts = contexts.iter().map(|(model, tokens)| ((*model).to_owned(), *tokens)).collect();
    fleet.add_worker_with(4, |mut deps| {
        deps.options.on_context_overflow = on_context_overflow;
        deps.with_estimates(Estimates::of(contexts))
    });
    fleet
}

fn job() -> Value {
    json!({"type": "agent.x", "args": ["go"], "ext_agent_model": "small", "ext_agent_fallback_models": ["unknown", "large"],
           "ext_agent_tools": [{"name": "search"}], "ext_agent_max_tokens": 100})
}

/// The next model of the list whose configured context has room is asked; one of unknown size is not.
#[tokio::test]
async fn a_model_with_room_is_asked() {
    let fleet = fleet(OnContextOverflow::Fallback, &[("test/small", 5_000), ("test/large", 100_000)]).await;
    let id = fleet.push(&job()).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["result"], "done by large", "{done:#}");
    let asked: Vec<_> = fleet.models.calls().iter().map(|call| call.request["model"].clone()).collect();
    assert_eq!(asked, ["small", "small", "large"]);
    assert_eq!(fleet.events_named(&id, "history.shortened").await.len(), 0);
    fleet.end().await;
}

/// Without such a model, the oldest outcomes are shortened for the request; the conversation keeps them.
#[tokio::test]
async fn the_oldest_outcomes_are_shortened() {
    for rule in [OnContextOverflow::Fallback, OnContextOverflow::Shorten] {
        let contexts: &[(&str, i64)] =
            if rule == OnContextOverflow::Shorten { &[("test/large", 100_000)] } else { &[] };
        let fleet = fleet(rule, contexts).await;
        let id = fleet.push(&job()).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["result"], "done by small", "{rule:?}: {done:#}");
        let shortened = fleet.events_named(&id, "history.shortened").await;
        assert_eq!((shortened.len(), &shortened[0]["results"]), (1, &json!(1)), "{rule:?}");
        let engagement = fleet.engagement_of(&id).await;
        let messages = fleet.get(&format!("/engagements/{engagement}/messages")).await.to_string();
        assert!(!messages.contains("are left out"), "{rule:?}: the conversation is whole");
        fleet.end().await;
    }
}

/// When nothing can be shortened, or the configuration says so, the job fails once and for all.
#[tokio::test]
async fn otherwise_the_job_fails_without_retries() {
    let whole = "y".repeat(30_000);
    for (rule, input) in [(OnContextOverflow::Fail, "go"), (OnContextOverflow::Fallback, whole.as_str())] {
        let fleet = fleet(rule, &[]).await;
        let mut job = job();
        job["args"] = json!([input]);
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!(
            (&done["state"], &done["error"]["code"]),
            (&json!("discarded"), &json!("AGENT_CONTEXT_OVERFLOW"))
        );
        assert_eq!(done["attempt"], 1, "{done:#}");
        fleet.end().await;
    }
}
