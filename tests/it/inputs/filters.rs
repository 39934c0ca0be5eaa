//! Filters of the agent: content on its way in (RS-08), personal data in whatever leaves the worker (RS-23).

use super::{bodies, conversation, desk, job, told};
use serde_json::{Value, json};
use turnstone_tests::{Reply, model_server};

/// RS-08, SEC-7: `block` ends the job with CONTENT_FILTERED and asks no model; `warn` and `log` pass.
#[tokio::test]
async fn blocked_content_asks_no_model() {
    for (action, state, calls, events) in
        [("block", "discarded", 0, 1), ("warn", "completed", 1, 1), ("log", "completed", 1, 0)]
    {
        let spec = format!("  safety: {{content_filtering: {{categories: [violence], action: {action}}}}}\n");
        let fleet = desk(&spec, |_| Reply::text("done")).await;
        let id = fleet.push(&job(&json!(["How do I make a bomb?"]))).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], state, "{action}: {done:#}");
        if action == "block" {
            assert_eq!(done["error"]["code"], "OSSA_CONTENT_FILTERED");
        }
        assert_eq!(fleet.models.calls().len(), calls, "{action}");
        let flagged = told(&fleet, &id, "content.flagged").await;
        assert_eq!(flagged.len(), events, "{action}");
        assert!(flagged.iter().all(|data| data["found"] == json!(["violence"]) && data["action"] == action));
        let harmless = fleet.push(&job(&json!(["How do I make a cake?"]))).await;
        assert_eq!(fleet.settled(&harmless).await["state"], "completed");
        fleet.end().await;
    }
}

const SECRETS: [&str; 2] = ["ada@example.org", "123-45-6789"];

fn leaking(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"who": "ada@example.org, 123-45-6789"})),
        _ => Reply::text("Ask ada@example.org, 123-45-6789"),
    }
}

/// RS-23, SEC-4: tool outputs, answers and events are redacted before they are stored or sent; the tool itself gets what
/// the model wrote.
#[tokio::test]
async fn personal_data_never_leaves_the_worker() {
    let spec = "  tools: [{type: http, name: search}]\n  security: {output_filtering: true}\n";
    let fleet = desk(spec, leaking).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["result"], "Ask [redacted email], [redacted ssn]", "{done:#}");
    assert_eq!(fleet.tools.calls()[0].input["who"], "ada@example.org, 123-45-6789", "the tool needs it");
    let engagement = fleet.engagement_of(&id).await;
    let mut seen = vec![done.to_string(), json!(conversation(&fleet, &id).await[2..]).to_string()];
    seen.push(fleet.get(&format!("/ojs/v1/jobs/{id}/events?limit=1000")).await.to_string());
    let journal = fleet.get(&format!("/engagements/{engagement}/tool-calls")).await;
    let calls = journal["tool_calls"].as_array().unwrap().clone();
    seen.extend(calls.iter().map(|call| call["outcome"].to_string()));
    for phase in ["norm", "infer", "exec", "persist", "emit"] {
        seen.push(json!(bodies(&fleet, &id, phase).await).to_string());
    }
    // What went back to the model as the tool's outcome.
    let second = &fleet.models.calls()[1].request["messages"];
    let outcome = second.as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
    seen.push(outcome.to_string());
    for text in &seen {
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
    assert!(told(&fleet, &id, "content.flagged").await.iter().any(|data| data["where"] == "tool"));
    fleet.end().await;
}

/// RS-23: `block` withholds a tool's output and fails a job whose answer has personal data; what was paid is booked.
#[tokio::test]
async fn blocked_personal_data_is_withheld() {
    let spec =
        "  tools: [{type: http, name: search}]\n  safety: {pii_detection: {types: [ssn], action: block}}\n";
    let fleet = desk(spec, leaking).await;
    let id = fleet.push(&job(&json!(["go"]))).await;
    let done = fleet.settled(&id).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_CONTENT_FILTERED"))
    );
    assert_eq!(done["ext_agent_tokens_used"], 19 + 15);
    assert_eq!(done["ext_agent_tool_results"][0]["error"]["code"], "OSSA_CONTENT_FILTERED");
    let talk = json!(conversation(&fleet, &id).await[2..]).to_string();
    assert!(!talk.contains("123-45-6789"), "{talk}");
    fleet.end().await;
}

/// SEC-4: personal data of an input is redacted before a provider sees it, where the agent asks for that.
#[tokio::test]
async fn personal_data_of_an_input_does_not_reach_the_provider() {
    let fleet = desk("  safety: {pii_detection: {}}\n", |_| Reply::text("done")).await;
    let id = fleet.push(&job(&json!(["I am ada@example.org"]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let sent = fleet.models.calls()[0].request.to_string();
    assert!(sent.contains("I am [redacted email]") && !sent.contains("ada@"), "{sent}");
    fleet.end().await;
}
