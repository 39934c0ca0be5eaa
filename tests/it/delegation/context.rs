//! The context that a delegate receives beside its input (OSSA §5, `context_propagation` and `context_transfer`).

use super::{answers, ask, calls, engagement, may_ask, oas, ossa, who};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Fleet, Reply};

/// Returns the prompt of an expert under a desk on these terms, and the meta of the expert's job.
async fn delegate_input(terms: &str) -> (String, Value) {
    let script = |request: &Value| match (who(request), answers(request).len()) {
        ("desk", 0) => Reply::call("state_set", json!({"key": "mood", "value": "angry"})),
        ("desk", 1) => calls(&[("expert", "help")]),
        ("desk", _) => Reply::text("done"),
        _ => Reply::text(newest(request)),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let desk = ossa("desk", &format!("state: {{mode: session}}\n  {terms}"));
    fleet.register_all(&[oas("expert", &[]), desk]).await;
    let meta = json!({"agent": "desk", "session_id": "s-7", "baggage": "ossa.session.id=s-7,a=b"});
    let id = ask(&fleet, "desk", &json!({"meta": meta})).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let child = engagement(&fleet, &id).await["children"][0]["job_id"].as_str().unwrap().to_owned();
    let child = fleet.job(&child).await;
    let said = child["args"][0].as_str().unwrap().to_owned();
    fleet.end().await;
    (said, child["meta"].clone())
}

const STATE: &str = r#"The state of the session: {"mood":"angry"}"#;
const HISTORY: &str = "The conversation so far:";

/// OSSA §5: each flag adds its own part of the context; without flags it is the session's id only.
#[tokio::test]
async fn flags_select_the_context_of_a_delegate() {
    let (said, meta) = delegate_input(&may_ask("expert", "max_depth: 3")).await;
    assert_eq!(said, "help");
    let sessions = (&meta["ossa.parent.session.id"], &meta["session_id"]);
    assert_eq!(
        sessions,
        (&json!("s-7"), &json!("s-7")),
        "the parent's session, not its engagement: {meta:#}"
    );
    assert_eq!(meta["baggage"], "ossa.session.id=s-7,a=b");

    let flags = "context_propagation: {include_state: true, include_session_id: false}";
    let (said, meta) = delegate_input(&may_ask("expert", flags)).await;
    assert!(said.starts_with("help") && said.contains(STATE) && !said.contains(HISTORY), "{said}");
    assert!(meta.get("ossa.parent.session.id").is_none() && meta.get("session_id").is_none(), "{meta:#}");
    assert_eq!(meta["baggage"], "a=b", "nor by baggage");

    let (said, _) = delegate_input(&may_ask("expert", "context_propagation: {include_history: true}")).await;
    assert!(said.contains(HISTORY) && !said.contains(STATE), "{said}");
}

/// OSSA §5: `context_transfer: full` carries the conversation and the state; a flag removes a part of it.
#[tokio::test]
async fn a_full_transfer_carries_the_state() {
    let handoff = |more: &str| {
        format!("collaboration: {{handoffs: [{{target_agent: expert, context_transfer: full{more}}}]}}")
    };
    let (said, _) = delegate_input(&handoff("")).await;
    assert!(said.contains(STATE) && said.contains(HISTORY), "{said}");
    let (said, _) = delegate_input(&handoff(", context_propagation: {include_state: false}")).await;
    assert!(!said.contains(STATE) && said.contains(HISTORY), "{said}");
}
