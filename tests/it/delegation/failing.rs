//! OSSA §5 `on_failure` and `timeout_ms`.

use super::{answers, ask, calls, engagement, may_ask, oas, ossa, who};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::model_server::newest;
use turnstone_tests::{Fleet, Reply};

/// Jobs, and so their children, are not retried.
fn once() -> Value {
    json!({"options": {"retry": {"max_attempts": 1}}})
}

fn lead(request: &Value, requested: &[(&str, &str)]) -> Reply {
    let received = answers(request);
    if received.is_empty() { calls(requested) } else { Reply::text(received.join("|")) }
}

#[tokio::test]
async fn a_child_that_failed_is_replaced_once() {
    let tried = AtomicUsize::new(0);
    let script = move |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "look")]),
        _ if tried.fetch_add(1, Ordering::SeqCst) == 0 => Reply::Status(400),
        _ => Reply::text("found"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    fleet.register_all(&[oas("scout", &[]), ossa("lead", &may_ask("scout", "on_failure: retry"))]).await;
    let id = ask(&fleet, "lead", &once()).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "{\"text\":\"found\"}", "{done:#}");
    let children = engagement(&fleet, &id).await["children"].clone();
    assert_eq!(
        (&children[0]["status"], &children[1]["status"]),
        (&json!("error"), &json!("success")),
        "{children:#}"
    );
    fleet.end().await;
}

/// OSSA §5: `fallback_agents` are called in their order until one answers.
#[tokio::test]
async fn a_fallback_agent_is_called_after_a_failure() {
    let script = |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "look")]),
        "scout" | "intern" => Reply::Status(400),
        _ => Reply::text("found by the clerk"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let terms = may_ask("scout", "on_failure: fallback");
    let rest =
        format!("{terms}\n  reliability: {{failover: {{enabled: true, fallback_agents: [intern, clerk]}}}}");
    let agents = [oas("scout", &[]), oas("intern", &[]), oas("clerk", &[]), ossa("lead", &rest)];
    fleet.register_all(&agents).await;
    let id = ask(&fleet, "lead", &once()).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "{\"text\":\"found by the clerk\"}", "{done:#}");
    fleet.end().await;
}

/// The model receives the one failure and the results of the other calls.
#[tokio::test]
async fn one_failure_does_not_lose_the_others() {
    let script = |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "good"), ("scout", "bad"), ("scout", "fine")]),
        _ if newest(request) == "bad" => Reply::Status(400),
        _ => Reply::text(newest(request)),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let lead = ossa("lead", &may_ask("scout", "type: parallel, on_failure: retry"));
    fleet.register_all(&[oas("scout", &[]), lead]).await;
    let id = ask(&fleet, "lead", &once()).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let result = done["result"].as_str().unwrap();
    assert!(result.starts_with("{\"text\":\"good\"}|error OSSA_DELEGATION_FAILED:"), "{result}");
    assert!(result.ends_with("|{\"text\":\"fine\"}"), "{result}");
    assert_eq!(
        fleet.events_named(&id, "delegation.completed").await.len(),
        4,
        "two were tried for the one that failed"
    );
    fleet.end().await;
}

/// Starts a fleet in which `scout` fails this many times, and registers the agent `lead` on these terms.
async fn failing(times: usize, rest: &str) -> Fleet {
    let tried = AtomicUsize::new(0);
    let script = move |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "look")]),
        "boss" => Reply::text("{\"approve\": true, \"reason\": \"worth a try\"}"),
        "scout" if tried.fetch_add(1, Ordering::SeqCst) < times => Reply::Status(400),
        _ => Reply::text("found"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let rest = format!("{}\n  {rest}", may_ask("scout, clerk", ""));
    fleet.register_all(&[oas("scout", &[]), oas("clerk", &[]), oas("boss", &[]), ossa("lead", &rest)]).await;
    fleet
}

/// Runs the job of `failing` to its end; returns it and the number of calls of `scout`.
async fn ended(fleet: &Fleet, id: &str) -> (Value, usize) {
    let done = fleet.wait_for(id, &[JobState::Completed, JobState::Discarded]).await;
    let requested = fleet.models.calls().iter().filter(|call| who(&call.request) == "scout").count();
    (done, requested)
}

/// RS-50: without a handler and a reviewer the model receives the failure, and no job waits.
#[tokio::test]
async fn a_failure_without_handler_or_reviewer_reaches_the_model() {
    let fleet = failing(1, "").await;
    let id = ask(&fleet, "lead", &once()).await;
    let (done, requested) = ended(&fleet, &id).await;
    let result = done["result"].as_str().unwrap_or_default();
    assert!(result.starts_with("error OSSA_DELEGATION_FAILED:"), "{done:#}");
    assert_eq!((requested, fleet.get("/reviews").await["items"].as_array().unwrap().len()), (1, 0));
    assert_eq!(
        fleet.events_named(&id, "error.escalated").await.len(),
        1,
        "operators see that it wanted to escalate"
    );
    fleet.end().await;
}

/// RS-50: the handler for DELEGATION_FAILED applies before a reviewer is asked.
#[tokio::test]
async fn a_handler_decides_about_a_failed_delegate() {
    let reviewed = "autonomy: {escalation_policy: {target: ann}}";
    for (handler, state, result, times) in [
        ("strategy: retry, max_retries: 2", "completed", "{\"text\":\"found\"}", 3),
        ("strategy: skip", "completed", "`scout` could not be called; continue without its result", 1),
        ("strategy: fallback, fallback_value: {text: none}", "completed", "{\"text\":\"none\"}", 1),
        ("strategy: fallback, fallback_capability: clerk", "completed", "{\"text\":\"found\"}", 1),
        ("strategy: abort", "discarded", "", 1),
    ] {
        let rest = format!("{reviewed}\n  error_handlers: [{{error_codes: [DELEGATION_FAILED], {handler}}}]");
        let fleet = failing(2, &rest).await;
        let id = ask(&fleet, "lead", &once()).await;
        let (done, requested) = ended(&fleet, &id).await;
        assert_eq!((&done["state"], requested), (&json!(state), times), "{handler}: {done:#}");
        assert_eq!(done["result"].as_str().unwrap_or_default(), result, "{handler}");
        if state == "discarded" {
            assert_eq!(done["error"]["details"]["ossa_code"], "DELEGATION_FAILED", "{done:#}");
        }
        assert_eq!(fleet.get("/reviews").await["items"].as_array().unwrap().len(), 0, "{handler}");
        fleet.end().await;
    }
}

async fn question(fleet: &Fleet) -> Value {
    fleet
        .until("a review is open", async || fleet.get("/reviews?state=open").await["items"][0].is_object())
        .await;
    fleet.get("/reviews?state=open").await["items"][0].clone()
}

/// RS-50: the manifest's contact receives one question with its deadline. An approval calls the delegate once more,
/// after which the model receives any failure. A rejection or silence ends the job without a second question.
#[tokio::test]
async fn the_manifests_contact_is_asked_once_about_a_failed_delegate() {
    for (contact, reviewer) in [
        ("autonomy: {escalation_policy: {target: ann, timeout_seconds: 60}}", "ann"),
        (
            "safety: {human_in_loop: {enabled: true, timeout_seconds: 60}}\n  \
             error_handlers: [{error_codes: [DELEGATION_FAILED], strategy: escalate, escalation_target: bob}]",
            "bob",
        ),
    ] {
        for (verb, fails) in [("approve", 1), ("approve", 2), ("reject", 1), ("", 1)] {
            let fleet = failing(fails, contact).await;
            let id = ask(&fleet, "lead", &once()).await;
            let review = question(&fleet).await;
            assert_eq!((&review["reviewer"], &review["kind"]), (&json!(reviewer), &json!("escalation")));
            assert!(review["question"]["what_happened"].as_str().unwrap().contains("scout"), "{review:#}");
            assert!(review["deadline_at"].is_string(), "{review:#}");
            assert_eq!(engagement(&fleet, &id).await["status"], "waiting-for-review");
            if verb.is_empty() {
                fleet.clock.advance_ms(60_000);
                fleet.tick().await;
            } else {
                let path = format!("/reviews/{}/{verb}", review["id"].as_str().unwrap());
                fleet.post(&path, &json!({"by": reviewer, "reason": "because"})).await;
            }
            let (done, requested) = ended(&fleet, &id).await;
            if verb == "approve" {
                let start = if fails == 1 { "{\"text\":\"found\"}" } else { "error OSSA_DELEGATION_FAILED:" };
                assert!(done["result"].as_str().unwrap().starts_with(start), "{done:#}");
                assert_eq!(requested, 2);
            } else {
                assert_eq!(
                    (&done["state"], &done["error"]["code"], requested),
                    (&json!("discarded"), &json!("OSSA_DELEGATION_FAILED"), 1),
                    "{done:#}"
                );
            }
            assert_eq!(fleet.get("/reviews").await["items"].as_array().unwrap().len(), 1, "one question");
            fleet.end().await;
        }
    }
}

/// OSSA §2 `type: supervisor`: an agent decides, either the named one or the caller of this one.
#[tokio::test]
async fn a_supervising_agent_decides_about_a_failed_delegate() {
    let fleet = failing(1, "autonomy: {escalation_policy: {type: supervisor, target: boss}}").await;
    let id = ask(&fleet, "lead", &once()).await;
    let (done, requested) = ended(&fleet, &id).await;
    assert_eq!((done["result"].as_str(), requested), (Some("{\"text\":\"found\"}"), 2), "{done:#}");
    let reviews = fleet.get("/reviews").await["items"].clone();
    assert_eq!(
        (reviews.as_array().unwrap().len(), &reviews[0]["state"], &reviews[0]["reviewer"]),
        (1, &json!("approved"), &json!("oagent://boss")),
        "{reviews:#}"
    );
    let boss = fleet.models.calls().into_iter().find(|call| who(&call.request) == "boss").unwrap();
    assert!(boss.input().contains("ask the agent once more"), "{}", boss.input());
    fleet.end().await;
}

/// A child that takes longer than `timeout_ms` is cancelled, and the outcome is a timeout.
#[tokio::test]
async fn a_child_that_takes_too_long_is_cancelled() {
    let script = |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "look"), ("scout", "look"), ("clerk", "note")]),
        "scout" => Reply::Hang,
        _ => Reply::text("noted"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let rest = "collaboration: {delegation: {enabled: true, allowed_agents: [scout, clerk], type: parallel, \
                timeout_ms: 60000, on_failure: retry}}";
    fleet.register_all(&[oas("scout", &[]), oas("clerk", &[]), ossa("lead", rest)]).await;
    let id = ask(&fleet, "lead", &once()).await;
    for _ in 0..2 {
        fleet
            .until("two scouts look", async || {
                fleet.number("SELECT count(*) FROM jobs WHERE state = 'active'").await == 2
            })
            .await;
        fleet.clock.advance_ms(60_000);
        fleet.tick().await;
    }
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let result = done["result"].as_str().unwrap();
    assert_eq!(result.matches("status timeout").count(), 2, "{result}");
    assert!(result.ends_with("|{\"text\":\"noted\"}"), "{result}");
    let children = engagement(&fleet, &id).await["children"].clone();
    let late = children.as_array().unwrap().iter().filter(|link| link["status"] == "timeout");
    assert_eq!(late.filter(|link| link["state"] == "cancelled").count(), 4, "{children:#}");
    fleet.end().await;
}
