//! OSSA §5 `on_failure` and `timeout_ms`.

use super::{answers, ask, calls, engagement, may_ask, oas, ossa, register, said, told, who};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::JobState;
use turnstone_tests::{Fleet, Reply};

/// Jobs, and so their children, are not tried again by themselves.
fn once() -> Value {
    json!({"options": {"retry": {"max_attempts": 1}}})
}

fn lead(request: &Value, asked: &[(&str, &str)]) -> Reply {
    let told = answers(request);
    if told.is_empty() { calls(asked) } else { Reply::text(told.join("|")) }
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
    register(&fleet, &[oas("scout", &[]), ossa("lead", &may_ask("scout", "on_failure: retry"))]).await;
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

#[tokio::test]
async fn another_agent_is_asked_when_one_failed() {
    let script = |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "look")]),
        "scout" => Reply::Status(400),
        _ => Reply::text("found by the clerk"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let terms = may_ask("scout", "on_failure: fallback");
    let rest = format!("{terms}\n  reliability: {{failover: {{enabled: true, fallback_agents: [clerk]}}}}");
    register(&fleet, &[oas("scout", &[]), oas("clerk", &[]), ossa("lead", &rest)]).await;
    let id = ask(&fleet, "lead", &once()).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "{\"text\":\"found by the clerk\"}", "{done:#}");
    fleet.end().await;
}

/// One failure is told to the model, and the results of the others are there.
#[tokio::test]
async fn one_failure_does_not_lose_the_others() {
    let script = |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "good"), ("scout", "bad"), ("scout", "fine")]),
        _ if said(request) == "bad" => Reply::Status(400),
        _ => Reply::text(said(request)),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let lead = ossa("lead", &may_ask("scout", "type: parallel, on_failure: retry"));
    register(&fleet, &[oas("scout", &[]), lead]).await;
    let id = ask(&fleet, "lead", &once()).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    let result = done["result"].as_str().unwrap();
    assert!(result.starts_with("{\"text\":\"good\"}|error OSSA_DELEGATION_FAILED:"), "{result}");
    assert!(result.ends_with("|{\"text\":\"fine\"}"), "{result}");
    assert_eq!(
        told(&fleet, &id, "delegation.completed").await.len(),
        4,
        "two were tried for the one that failed"
    );
    fleet.end().await;
}

#[tokio::test]
async fn somebody_is_asked_whether_to_try_again() {
    let tried = AtomicUsize::new(0);
    let script = move |request: &Value| match who(request) {
        "lead" => lead(request, &[("scout", "look")]),
        _ if tried.fetch_add(1, Ordering::SeqCst) == 0 => Reply::Status(400),
        _ => Reply::text("found"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    register(&fleet, &[oas("scout", &[]), ossa("lead", &may_ask("scout", ""))]).await;
    let id = ask(&fleet, "lead", &once()).await;
    fleet
        .until("somebody is asked", async || fleet.get("/reviews?state=open").await["items"][0].is_object())
        .await;
    let review = fleet.get("/reviews?state=open").await["items"][0].clone();
    assert!(review["question"]["what_happened"].as_str().unwrap().contains("scout"), "{review:#}");
    assert_eq!(engagement(&fleet, &id).await["status"], "waiting-for-review");
    fleet.post(&format!("/reviews/{}/approve", review["id"].as_str().unwrap()), &json!({"by": "ann"})).await;
    let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
    assert_eq!(done["result"], "{\"text\":\"found\"}", "{done:#}");
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
    register(&fleet, &[oas("scout", &[]), oas("clerk", &[]), ossa("lead", rest)]).await;
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
    let late = children.as_array().unwrap().iter().filter(|kin| kin["status"] == "timeout");
    assert_eq!(late.filter(|kin| kin["state"] == "cancelled").count(), 4, "{children:#}");
    fleet.end().await;
}
