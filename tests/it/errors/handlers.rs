//! Error handlers of an agent's document (RS-50, OSSA §2).

use super::{answer, attempts, desk, open_review, push, run, tool};
use serde_json::{Value, json};
use turnstone_tests::{Fleet, Reply};

fn handled(rest: &str) -> String {
    format!("{}  error_handlers:\n    - {{error_codes: [TOOL_ERROR], {rest}}}\n", broken())
}

fn broken() -> String {
    format!("  tools:\n{}{}", tool("broken", ""), tool("search", ""))
}

/// RS-50: a value replaces the failed output, after the retries of the handler.
#[tokio::test]
async fn a_value_replaces_the_output() {
    let spec = handled("strategy: fallback, max_retries: 1, fallback_value: {hits: []}");
    let fleet = desk(Fleet::builder(), &spec, &["broken"]).await;
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    assert_eq!(fleet.tools.calls().len(), 2);
    let call = attempts(&fleet, &id).await[0].clone();
    assert_eq!(call["outcome"]["output"], json!({"hits": []}), "{call:#}");
    assert_eq!((&call["handled"]["strategy"], &call["retries"]), (&json!("fallback"), &json!(1)), "{call:#}");
    assert!(fleet.models.calls()[1].request["messages"].to_string().contains("hits"));
    fleet.end().await;
}

/// RS-50: another tool is called under the same call id, and the audit names the replaced tool.
#[tokio::test]
async fn another_tool_is_called_instead() {
    let spec = "  tools:\n    - {type: http, name: broken, capabilities: [{name: broken, retry_policy: {max_attempts: 1}, \
                error_handling: {on_error: fallback, fallback_capability: search}}]}\n    - {type: http, name: search}\n";
    let fleet = desk(Fleet::builder(), spec, &["broken"]).await;
    let (id, done) = run(&fleet).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let called: Vec<(String, String)> =
        fleet.tools.calls().into_iter().map(|call| (call.tool, call.key)).collect();
    assert_eq!((called[0].0.as_str(), called[1].0.as_str(), called.len()), ("broken", "search", 2));
    assert_eq!(called[0].1, called[1].1);
    let call = attempts(&fleet, &id).await[0].clone();
    assert_eq!((&call["name"], &call["provider"]), (&json!("broken"), &json!("search")), "{call:#}");
    assert_eq!(
        (&call["outcome"]["status"], &call["tried"][0]["code"]),
        (&json!("success"), &json!("AGENT_TOOL_EXECUTION_FAILED"))
    );
    fleet.end().await;
}

/// RS-50: `skip` and `on_error: ignore` continue without the result.
#[tokio::test]
async fn a_skipped_call_is_no_error_for_the_model() {
    for spec in [
        handled("strategy: skip"),
        "  tools:\n    - {type: http, name: broken, error_handling: {on_error: ignore}}\n".to_owned(),
    ] {
        let fleet = desk(Fleet::builder(), &spec, &["broken"]).await;
        let (id, done) = run(&fleet).await;
        assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 1), "{done:#}");
        let prompt = fleet.models.calls()[1].request["messages"].to_string();
        assert!(prompt.contains("without its result") && !prompt.contains("AGENT_TOOL"), "{prompt}");
        let call = attempts(&fleet, &id).await[0].clone();
        assert_eq!(
            (&call["handled"]["strategy"], &call["outcome"]["status"]),
            (&json!("skip"), &json!("error"))
        );
        fleet.end().await;
    }
}

/// RS-50: `abort` ends the job with the error, and no attempt follows.
#[tokio::test]
async fn abort_ends_the_job() {
    let fleet = desk(Fleet::builder(), &handled("strategy: abort"), &["broken"]).await;
    let (_, done) = run(&fleet).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("AGENT_TOOL_EXECUTION_FAILED"))
    );
    assert_eq!(
        (&done["error"]["retryable"], &done["error"]["details"]["ossa_code"]),
        (&json!(false), &json!("TOOL_ERROR"))
    );
    assert_eq!((fleet.tools.calls().len(), fleet.models.calls().len()), (1, 1));
    fleet.end().await;
}

/// RS-50: `escalate` parks the job with a review that has the error. An approval continues the job, a rejection ends
/// it.
#[tokio::test]
async fn an_escalated_tool_error_asks_a_person() {
    for (verb, state) in [("approve", "completed"), ("reject", "discarded")] {
        let spec = handled("strategy: escalate, escalation_target: ann");
        let fleet = desk(Fleet::builder(), &spec, &["broken"]).await;
        let (id, parked) = run(&fleet).await;
        assert_eq!(parked["state"], "pending", "{parked:#}");
        let review = open_review(&fleet).await;
        assert_eq!((&review["kind"], &review["reviewer"]), (&json!("escalation"), &json!("ann")));
        assert_eq!(review["question"]["error"]["ossa_code"], "TOOL_ERROR", "{review:#}");
        answer(&fleet, &review, verb).await;
        let done = fleet.wait_for(&id, &super::ENDED).await;
        assert_eq!(done["state"], state, "{done:#}");
        assert_eq!(fleet.tools.calls().len(), 1, "the call is not made again");
        fleet.end().await;
    }
}

/// RS-50: a value replaces the whole result when the model is unreachable.
#[tokio::test]
async fn a_value_replaces_the_result() {
    let fleet = Fleet::builder().model(|_: &Value| Reply::Status(400)).start().await;
    super::register(
        &fleet,
        "  error_handlers:\n    - {error_codes: [LLM_ERROR, LLM_TIMEOUT], strategy: fallback, fallback_value: {answer: unknown}}",
    )
    .await;
    let id = push(&fleet).await;
    let done = fleet.settled(&id).await;
    assert_eq!(
        (&done["state"], &done["result"]),
        (&json!("completed"), &json!({"answer": "unknown"})),
        "{done:#}"
    );
    assert!(fleet.event_names(&id).await.contains(&"error.replaced".to_owned()));
    fleet.end().await;
}

/// OSSA: an output that does not match the `output_schema` of its capability is an error for the model, and the call
/// is not repeated.
#[tokio::test]
async fn an_output_has_the_form_that_its_capability_declares() {
    for (member, fits) in [("echo", true), ("hits", false)] {
        let spec = format!(
            "  tools: [{{type: http, name: search, capabilities: [{{name: search, output_schema: {{type: object, required: [{member}]}}}}]}}]\n"
        );
        let fleet = desk(Fleet::builder(), &spec, &["search"]).await;
        let (_, done) = run(&fleet).await;
        assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 1), "{done:#}");
        let prompt = fleet.models.calls()[1].request["messages"].to_string();
        assert_eq!(
            prompt.contains("SCHEMA_VIOLATION") && prompt.contains("output_schema"),
            !fits,
            "{prompt}"
        );
        fleet.end().await;
    }
}
