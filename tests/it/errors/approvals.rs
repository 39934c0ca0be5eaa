//! Calls that an OSSA manifest submits to a person for approval (D16).

use super::{ENDED, answer, desk, open_review, push, run};
use reqwest::StatusCode;
use serde_json::json;
use turnstone_tests::{Backend, Fleet};

const ANN: &str = "  autonomy: {escalation_policy: {target: ann}}\n";

/// D16: `approval_required` of a tool asks for an approval before each of its calls, and only the named reviewer may
/// answer.
#[tokio::test]
async fn a_tool_that_needs_an_approval_is_called_after_it() {
    for backend in Backend::ALL {
        let spec = format!("{ANN}  tools:\n    - {{type: http, name: search, approval_required: true}}");
        let fleet = desk(Fleet::builder().on(backend), &spec, &["search"]).await;
        let id = push(&fleet).await;
        assert_eq!(fleet.settled(&id).await["state"], "pending");
        let review = open_review(&fleet).await;
        assert_eq!((&review["reviewer"], &review["kind"]), (&json!("ann"), &json!("input")));
        assert_eq!(review["question"]["inputs"], json!({"n": 0}));
        let path = format!("/reviews/{}/approve", review["id"].as_str().unwrap());
        assert_eq!(fleet.post(&path, &json!({"by": "mallory"})).await.0, StatusCode::FORBIDDEN);
        assert!(fleet.tools.calls().is_empty());
        answer(&fleet, &review, "approve").await;
        let done = fleet.wait_for(&id, &ENDED).await;
        assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("completed"), 1), "{done:#}");
        fleet.end().await;
    }
}

/// D16: `autonomy.approval_required` asks before every call. A rejection ends the engagement, and no
/// handler applies to the rejection.
#[tokio::test]
async fn an_agent_that_needs_approvals_has_a_review_before_each_call() {
    let spec = "  autonomy: {approval_required: true, escalation_policy: {target: ann}}\n  \
                safety: {human_in_loop: {enabled: true, triggers: [policy_violation]}}\n  \
                tools:\n    - {type: http, name: search, parallel: true}\n    - {type: http, name: book, parallel: true}";
    let fleet = desk(Fleet::builder(), spec, &["search", "book"]).await;
    let id = push(&fleet).await;
    fleet.settled(&id).await;
    let open = fleet.get("/reviews?state=open").await["items"].clone();
    assert_eq!(
        (&open[0]["question"]["name"], &open[1]["question"]["name"]),
        (&json!("search"), &json!("book"))
    );
    answer(&fleet, &open[0], "approve").await;
    answer(&fleet, &open[1], "reject").await;
    let done = fleet.wait_for(&id, &ENDED).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_POLICY_VIOLATION")),
        "{done:#}"
    );
    assert_eq!(fleet.tools.calls().len(), 1);
    assert_eq!(fleet.get("/reviews?state=open").await["items"], json!([]));
    fleet.end().await;
}

/// `human_in_loop` with `high_risk_action`: a call that is not idempotent needs an approval, another one does not.
/// Silence rejects it after `timeout_seconds`.
#[tokio::test]
async fn a_call_of_high_risk_has_a_review() {
    let spec = "  safety: {human_in_loop: {enabled: true, timeout_seconds: 60, triggers: [high_risk_action]}}\n  \
                tools:\n    - {type: http, name: search}\n    - {type: http, name: book}";
    let fleet = desk(Fleet::builder(), spec, &["search", "book"]).await;
    let id = push(&fleet).await;
    fleet.settled(&id).await;
    let review = open_review(&fleet).await;
    assert_eq!((&review["reviewer"], &review["question"]["name"]), (&json!("operator"), &json!("book")));
    assert_eq!(fleet.tools.calls().len(), 1, "search may be made twice");
    fleet.clock.advance_ms(60_000);
    fleet.tick().await;
    let done = fleet.wait_for(&id, &ENDED).await;
    assert_eq!((&done["state"], fleet.tools.calls().len()), (&json!("discarded"), 1), "{done:#}");
    fleet.end().await;
}

/// `human_in_loop` with `policy_violation`: a refused call is submitted for review once. After an approval the model
/// receives the error and continues, without a further review. A rejection ends the job with the error.
#[tokio::test]
async fn a_violation_has_one_review() {
    for backend in Backend::ALL {
        for (verb, state) in [("approve", "completed"), ("reject", "discarded")] {
            let spec = "  safety: {human_in_loop: {enabled: true, triggers: [policy_violation]}}\n  autonomy: {escalation_policy: \
                        {target: ann}}\n  tools: [{type: http, capabilities: [{name: search, error_handling: {error_mapping: \
                        {'500': POLICY_VIOLATION}}}]}]";
            let fleet = desk(Fleet::builder().on(backend), spec, &["search"]).await;
            fleet.tools.fail("search", 1000);
            let id = push(&fleet).await;
            assert_eq!(fleet.settled(&id).await["state"], "pending");
            let calls = fleet.tools.calls().len();
            let review = open_review(&fleet).await;
            assert_eq!((&review["reviewer"], &review["kind"]), (&json!("ann"), &json!("escalation")));
            assert_eq!(review["question"]["error"]["ossa_code"], "POLICY_VIOLATION", "{review:#}");
            answer(&fleet, &review, verb).await;
            let done = fleet.wait_for(&id, &ENDED).await;
            assert_eq!(done["state"], state, "{done:#}");
            if verb == "reject" {
                assert_eq!(done["error"]["code"], "OSSA_POLICY_VIOLATION", "{done:#}");
            }
            let reviews = fleet.get("/reviews").await;
            assert_eq!(reviews["items"].as_array().map(Vec::len), Some(1), "asked once: {reviews:#}");
            assert_eq!(fleet.tools.calls().len(), calls, "the call is not made again");
            fleet.end().await;
        }
    }
}

/// OSSA `autonomy`: a blocked call and one that is not allowed are refused and not offered; blocked beats allowed,
/// and a handler for POLICY_VIOLATION applies.
#[tokio::test]
async fn blocked_actions_are_never_called() {
    let tools =
        "  tools: [{type: http, name: search}, {type: http, name: web_search}, {type: http, name: book}]\n";
    for (autonomy, refused) in [
        ("blocked_actions: [web]", "web_search"),
        ("allowed_actions: [search, book], blocked_actions: [web_search]", "web_search"),
        ("allowed_actions: [search]", "book"),
    ] {
        let spec = format!("{tools}  autonomy: {{{autonomy}}}\n");
        let fleet = desk(Fleet::builder(), &spec, &["search", "web_search", "book"]).await;
        let (_, done) = run(&fleet).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        let called: Vec<String> = fleet.tools.calls().into_iter().map(|call| call.tool).collect();
        assert!(called.len() == 2 && !called.contains(&refused.to_owned()), "{autonomy}: {called:?}");
        let request = &fleet.models.calls()[0].request;
        assert!(!request["tools"].to_string().contains(&format!("\"{refused}\"")), "{request:#}");
        let prompt = fleet.models.calls()[1].request["messages"].to_string();
        assert!(prompt.contains("OSSA_POLICY_VIOLATION"), "{prompt}");
        fleet.end().await;
    }
    let handler = "  error_handlers: [{error_codes: [POLICY_VIOLATION], strategy: abort}]\n";
    let spec = format!("{tools}  autonomy: {{blocked_actions: ['*']}}\n{handler}");
    let fleet = desk(Fleet::builder(), &spec, &["search"]).await;
    let (_, done) = run(&fleet).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_POLICY_VIOLATION")),
        "{done:#}"
    );
    assert!(fleet.tools.calls().is_empty());
    fleet.end().await;
}
