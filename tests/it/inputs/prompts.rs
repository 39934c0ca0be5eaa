//! The parts of a prompt beside the conversation (RS-15 … RS-17; facts §6.2 case 8).

use super::{desk, job};
use serde_json::{Value, json};
use turnstone_tests::{Reply, model_server};

const SPEC: &str =
    "  llm: {provider: openai, model: m, topP: 0.5, frequencyPenalty: 0.25, presencePenalty: -0.5}
  tools: [{type: http, name: search}]
  conversation_memory: {window_size: 3}
  prompts:
    system: {template: 'Speak {{tone}}.', variables: {tone: softly}}
    few_shot_examples:
    - {input: Where?, output: Here.}
    - {input: When?, output: Now., context: It is noon.}
";

/// RS-15, RS-16, RS-17: the role is first and verbatim, then the template. The examples precede the history in every
/// call and do not count in its window, which never separates a call from its outcome.
#[tokio::test]
async fn role_template_and_examples_precede_every_history() {
    let fleet = desk(SPEC, |request| match model_server::outcomes(request) {
        // The window holds two outcomes at most, so the arguments count the calls.
        _ if last_n(request) >= 5 => Reply::text("done"),
        _ => Reply::call("search", json!({"n": last_n(request) + 1})),
    })
    .await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let calls = fleet.models.calls();
    assert_eq!(calls.len(), 6);
    for call in &calls {
        let messages = call.request["messages"].as_array().unwrap();
        assert_eq!(messages[0]["content"], "You are the desk.\n\nSpeak softly.");
        let said: Vec<&str> = messages[1..6].iter().map(|m| m["content"].as_str().unwrap_or("")).collect();
        assert_eq!(said, ["Where?", "Here.", "It is noon.\n\nWhen?", "Now.", "go"]);
        assert_ne!(messages.get(6).map(|m| &m["role"]), Some(&json!("tool")), "an outcome without its call");
        assert!(messages.len() <= 6 + 4, "{messages:#?}");
        let parameters = ["top_p", "frequency_penalty", "presence_penalty"].map(|name| &call.request[name]);
        assert_eq!(parameters, [&json!(0.5), &json!(0.25), &json!(-0.5)]);
    }
    fleet.end().await;
}

/// Returns the number in the latest outcome of a request.
fn last_n(request: &Value) -> i64 {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "tool");
    let echo = last.and_then(|message| serde_json::from_str::<Value>(message["content"].as_str()?).ok());
    echo.and_then(|echo| echo["echo"]["n"].as_i64()).unwrap_or(0)
}
