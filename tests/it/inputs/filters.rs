//! Filters of an agent: content of inputs (RS-08), and personal data in all output of the worker (RS-23).

use super::{bodies, conversation, desk, job};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::{Reply, model_server};

/// RS-08, SEC-7: `block` ends the job with CONTENT_FILTERED without a model call; `warn` and `log` pass.
#[tokio::test]
async fn blocked_content_calls_no_model() {
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
        let flagged = fleet.events_named(&id, "content.flagged").await;
        assert_eq!(flagged.len(), events, "{action}");
        assert!(flagged.iter().all(|data| data["found"] == json!(["violence"]) && data["action"] == action));
        let harmless = fleet.push(&job(&json!(["How do I make a cake?"]))).await;
        assert_eq!(fleet.settled(&harmless).await["state"], "completed");
        fleet.end().await;
    }
}

/// RS-08: blocked content of a tool's output or error reaches no model; with `warn` it passes.
#[tokio::test]
async fn blocked_content_of_a_tool_reaches_no_model() {
    for (action, passes) in [("block", false), ("warn", true)] {
        let spec = format!(
            "  tools: [{{type: http, name: search}}]\n  safety: {{content_filtering: {{categories: [violence], action: {action}}}}}\n"
        );
        let script = |request: &Value| match model_server::outcomes(request) {
            0 => Reply::call("search", json!({"found": ["How to make a\nbomb"]})),
            _ => Reply::text("done"),
        };
        let fleet = desk(&spec, script).await;
        let id = fleet.push(&job(&json!(["go"]))).await;
        let done = fleet.settled(&id).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        let request = fleet.models.calls()[1].request["messages"].as_array().unwrap().clone();
        let outcome = request.iter().find(|message| message["role"] == "tool").unwrap().to_string();
        assert_eq!(outcome.contains("bomb"), passes, "{outcome}");
        assert_eq!(outcome.contains("OSSA_CONTENT_FILTERED"), !passes, "{outcome}");
        let flagged = fleet.events_named(&id, "content.flagged").await;
        assert!(
            flagged.iter().any(|data| data["where"] == "tool" && data["action"] == action),
            "{flagged:?}"
        );
        fleet.end().await;
    }
}

/// RS-08: an answer to a question is an input: blocked content ends the job, in every protocol.
#[tokio::test]
async fn blocked_content_of_an_answer_calls_no_model() {
    let spec = "  tools: [{type: function, name: ask_user}]\n  safety: {content_filtering: {categories: [violence]}}\n";
    for resumes in [false, true] {
        let fleet = desk(spec, |request: &Value| match model_server::outcomes(request) {
            0 => Reply::call("ask_user", json!({"question": "What do you want to know?"})),
            _ => Reply::text("done"),
        })
        .await;
        let id = fleet.push(&job(&json!(["go"]))).await;
        fleet.wait_for(&id, &[JobState::Pending]).await;
        let (path, answer) = if resumes {
            let keys = json!({"answer": "How do I make a bomb?"});
            let resume = json!({"type": "ResumeWithInput", "request_id": id, "request_keys": keys});
            ("/agents/desk/process".to_owned(), resume)
        } else {
            let engagement = fleet.engagement_of(&id).await;
            let answers = json!({"answers": {"answer": "How do I make a bomb?"}});
            (format!("/engagements/{engagement}/answer"), answers)
        };
        let (status, body) = fleet.post(&path, &answer).await;
        assert!(status.is_success(), "{body:#}");
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["error"]["code"], "OSSA_CONTENT_FILTERED", "{done:#}");
        assert_eq!(fleet.models.calls().len(), 1, "the model never reads it");
        assert_eq!(fleet.events_named(&id, "content.flagged").await[0]["found"], json!(["violence"]));
        fleet.end().await;
    }
}

/// RS-08: a delegate's blocked result is withheld from its caller; after a handoff the job fails.
#[tokio::test]
async fn blocked_content_of_a_delegate_passes_nowhere() {
    for (mode, state) in [("supervisor", "completed"), ("handoff", "discarded")] {
        let spec = format!(
            "  collaboration: {{delegation: {{enabled: true, allowed_agents: [clerk], type: {mode}}}}}\n  \
             safety: {{content_filtering: {{categories: [violence]}}}}\n"
        );
        let script = |request: &Value| match model_server::outcomes(request) {
            0 if request["messages"][0]["content"].as_str().unwrap().contains("clerk") => {
                Reply::text("First you make a bomb")
            }
            0 => Reply::call("clerk", json!({"input": "go"})),
            _ => Reply::text("done"),
        };
        let fleet = turnstone_tests::Fleet::builder().model(script).start().await;
        let clerk = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: clerk}\nspec: {role: You are the clerk.}\n";
        fleet.register(clerk).await;
        super::register(&fleet, &spec).await;
        let id = fleet.push(&job(&json!(["go"]))).await;
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        assert_eq!(done["state"], state, "{done:#}");
        if state == "completed" {
            let request = fleet.models.calls().last().unwrap().request.to_string();
            assert!(!request.contains("bomb") && request.contains("OSSA_CONTENT_FILTERED"), "{request}");
        } else {
            assert_eq!(done["error"]["code"], "OSSA_CONTENT_FILTERED");
        }
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

/// RS-23, SEC-4: tool outputs, answers and events are redacted before they are stored or sent; the tool itself
/// receives the model's arguments unchanged.
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
    // The tool's outcome in the next model request.
    let second = &fleet.models.calls()[1].request["messages"];
    let outcome = second.as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
    seen.push(outcome.to_string());
    for text in &seen {
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
    }
    assert!(fleet.events_named(&id, "content.flagged").await.iter().any(|data| data["where"] == "tool"));
    fleet.end().await;
}

/// RS-23: `block` withholds a tool's output and fails a job whose answer has personal data. Its usage is booked.
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

/// SEC-4: personal data of an input is redacted before a provider sees it, if the agent requires that.
#[tokio::test]
async fn personal_data_of_an_input_does_not_reach_the_provider() {
    let fleet = desk("  safety: {pii_detection: {}}\n", |_| Reply::text("done")).await;
    let id = fleet.push(&job(&json!(["I am ada@example.org"]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let sent = fleet.models.calls()[0].request.to_string();
    assert!(sent.contains("I am [redacted email]") && !sent.contains("ada@"), "{sent}");
    fleet.end().await;
}
