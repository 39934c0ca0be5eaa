//! Members that only the provider of an answer understands: kept, sent back to their maker alone, and hidden with the words.

use crate::policy::{on_every_store, visible};
use reqwest::StatusCode;
use serde_json::{Value, json};
use turnstone_tests::documents::{oas, ossa};
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// Returns an answer that asks for a tool, with these signatures beside the call and beside the message.
fn signed(of_call: &str, of_message: &str) -> Reply {
    let call = json!({"index": 0, "id": "Ab3dEf6hI", "type": "function",
                      "function": {"name": "search", "arguments": "{\"q\":\"tide\"}"},
                      "extra_content": {"google": {"thought_signature": of_call}}});
    let delta = json!({"role": "assistant", "reasoning_content": of_message, "tool_calls": [call]});
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}],
                       "usage": {"prompt_tokens": 12, "completion_tokens": 7}});
    Reply::Wire(format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes())
}

async fn fleet(backend: Backend, of_call: String, of_message: String) -> Fleet {
    let script = move |request: &Value| match (request["model"].as_str(), model_server::outcomes(request)) {
        (_, 0) => signed(&of_call, &of_message),
        // The second turn is that of another model.
        (Some("first"), 1) if request["messages"].to_string().contains("move on") => Reply::Status(503),
        _ => Reply::text("at two"),
    };
    Fleet::builder().on(backend).model(script).start().await
}

fn job(input: &str) -> Value {
    json!({"type": "agent.x", "args": [input], "ext_agent_model": "first", "ext_agent_fallback_models": ["second"],
           "ext_agent_tools": [{"name": "search"}]})
}

/// Returns the assistant's message of the request number `nth`, and the id of the outcome after it.
fn asked(fleet: &Fleet, nth: usize) -> (Value, Value) {
    let request = &fleet.models.calls()[nth].request;
    let messages = request["messages"].as_array().unwrap();
    let at = messages.iter().position(|message| message["role"] == "assistant").unwrap();
    (messages[at].clone(), messages[at + 1]["tool_call_id"].clone())
}

/// Gemini refuses a call that comes back without its signature, and DeepSeek one without its reasoning.
#[tokio::test]
async fn a_provider_gets_its_members_back_and_a_fallback_a_clean_history() {
    on_every_store(async |backend| {
        let fleet = fleet(backend, "c2lnbmVk".to_owned(), "I look.".to_owned()).await;
        let id = fleet.push(&job("stay")).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        let (said, outcome) = asked(&fleet, 1);
        let call = &said["tool_calls"][0];
        assert_eq!(call["extra_content"], json!({"google": {"thought_signature": "c2lnbmVk"}}));
        assert_eq!((&call["id"], &outcome), (&json!("Ab3dEf6hI"), &json!("Ab3dEf6hI")));
        assert_eq!(said["reasoning_content"], "I look.");
        // Outside, the call has the id of this server.
        let engagement = fleet.engagement_of(&id).await;
        let messages = fleet.get(&format!("/engagements/{engagement}/messages")).await;
        let message = &messages["messages"][1];
        assert_ne!(message["tool_calls"][0]["call_id"], "Ab3dEf6hI");
        assert_eq!(message["attached"]["items"][1]["call"]["id"], "Ab3dEf6hI", "{message:#}");
        let export = fleet.get(&format!("/engagements/{engagement}/export")).await.to_string();
        assert!(export.contains("c2lnbmVk"), "{export}");

        let before = fleet.models.calls().len();
        let id = fleet.push(&job("move on")).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        assert_eq!(fleet.models.calls()[before + 2].request["model"], "second");
        let (said, outcome) = asked(&fleet, before + 2);
        let text = said.to_string();
        assert!(
            !text.contains("c2lnbmVk") && !text.contains("I look.") && !text.contains("Ab3dEf6hI"),
            "{text}"
        );
        assert_eq!(said["tool_calls"][0]["id"], outcome);
        fleet.end().await;
    })
    .await;
}

/// More than 64 KB of a call or 256 KB of an answer is not kept, nor is personal data that the agent redacts; an event says it.
#[tokio::test]
async fn members_that_may_not_be_kept_are_dropped_with_an_event() {
    let redacting = ossa(
        "redacting",
        "  tools: [{type: function, name: search}]\n  security: {output_filtering: {types: [email], action: redact}}",
    );
    for (of_call, of_message, meta, reason) in [
        ("s".repeat(70_000), "I look.".to_owned(), json!({}), "size"),
        ("s".to_owned(), "x".repeat(300_000), json!({}), "size"),
        ("s".to_owned(), "ada@example.org asks".to_owned(), json!({"agent": "redacting"}), "personal_data"),
    ] {
        let fleet = fleet(Backend::Sqlite, of_call.clone(), of_message.clone()).await;
        fleet.register(redacting.clone()).await;
        let mut job = job("stay");
        job["meta"] = meta;
        let id = fleet.push(&job).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], "completed", "{reason}: {done:#}");
        let (said, outcome) = asked(&fleet, 1);
        let is_large_call = of_call.len() > 64 * 1024;
        assert_eq!(
            said.to_string().contains(&of_message),
            is_large_call,
            "{reason}: only the call loses its members"
        );
        assert!(said["tool_calls"][0].get("extra_content").is_none(), "{reason}");
        assert_eq!((&said["tool_calls"][0]["id"], &outcome), (&json!("Ab3dEf6hI"), &json!("Ab3dEf6hI")));
        let dropped = fleet.events_named(&id, "model.attached_dropped").await;
        assert_eq!(dropped.len(), 1, "{reason}");
        assert_eq!(dropped[0]["reason"], reason, "{dropped:#?}");
        fleet.end().await;
    }
}

/// No guardrail reads reasoning, so an agent that has one shows none of it.
#[tokio::test]
async fn reasoning_is_hidden_where_words_are_checked() {
    let fleet = fleet(Backend::Sqlite, "c2lnbmVk".to_owned(), "a secret thought".to_owned()).await;
    let guardrail =
        "capabilities: {search: {}}\nguardrails: {output: {tool_name: search, assertion: 'true'}}\n";
    let (status, registered) = fleet.post("/agents", &json!({"document": oas("guarded", guardrail)})).await;
    assert!(status == StatusCode::CREATED || status == StatusCode::OK, "{registered:#}");
    let mut job = job("stay");
    job["meta"] = json!({"agent": "guarded"});
    let id = fleet.push(&job).await;
    fleet.settled(&id).await;
    let engagement = fleet.engagement_of(&id).await;
    let seen = visible(&fleet, &id, &engagement).await;
    assert!(!seen.contains("a secret thought") && !seen.contains("c2lnbmVk"), "{seen}");
    fleet.end().await;
}
