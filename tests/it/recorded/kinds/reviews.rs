//! Calls, turns and errors with a review.

use crate::recorded::recordings;
use crate::recorded::stage::{Ground, Stage, job_of, who};
use serde_json::{Value, json};
use turnstone_tests::documents::{oas, ossa};
use turnstone_tests::{Reply, model_server};

recordings!(
    everywhere: [review_approved],
    sqlite_first: [
        review_rejected,
        review_that_expires,
        review_by_a_group,
        review_by_an_agent,

        error_that_is_escalated,

    ],
);

fn booking(request: &Value) -> Reply {
    match (who(request), model_server::outcomes(request)) {
        ("auditor", _) => Reply::text("{\"approve\": true, \"reason\": \"cheap\"}"),
        (_, 0) => Reply::call("book", json!({"price": 640})),
        _ => Reply::text("booked"),
    }
}

/// Returns an agent whose bookings this reviewer confirms.
fn booker(reviewer: &str, side: &str) -> String {
    oas(
        "booker",
        &format!("capabilities: {{book: {{user_identity: false, {side}: {{require_review: {reviewer}}}}}}}"),
    )
}

/// Starts a job that waits for its reviewer.
async fn waiting(ground: Ground, side: &str) -> (Stage, String) {
    let mut stage = ground.stage(booking).await;
    stage.register(&[booker("manager", side)]).await;
    let id = stage.push(&job_of("booker")).await;
    stage.parked(&id).await;
    (stage, id)
}

async fn review_approved(ground: Ground) -> Value {
    let (mut stage, id) = waiting(ground, "input_restriction").await;
    stage.get("/reviews?state=open").await;
    stage.answer_review("approve", "manager").await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn review_rejected(ground: Ground) -> Value {
    let (mut stage, id) = waiting(ground, "input_restriction").await;
    stage.answer_review("reject", "manager").await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn review_that_expires(ground: Ground) -> Value {
    let mut stage = ground.stage(booking).await;
    let spec = "  safety: {human_in_loop: {enabled: true, timeout_seconds: 60, triggers: [high_risk_action]}}\n  \
                tools: [{type: http, name: book}]\n";
    stage.register(&[ossa("desk", spec)]).await;
    let id = stage.push(&job_of("desk")).await;
    stage.parked(&id).await;
    stage.pass_ms(60_000).await;
    stage.ended(&id).await;
    stage.recorded().await
}

/// Two of three have to approve; reminders are sent, and the review escalates to the owner.
async fn review_by_a_group(ground: Ground) -> Value {
    let rules = json!({"users": ["ann", "ben", "cem", "tests"], "groups": {"board": {
        "members": ["ann", "ben", "cem"], "quorum": 2, "remind_every_ms": 10_000, "answer_within_ms": 60_000,
        "escalate_to": "owner"}}});
    let mut stage = Stage::of(ground.fleet(booking).reviews(rules)).await;
    stage.register(&[booker("board", "input_restriction")]).await;
    let id = stage.push(&job_of("booker")).await;
    stage.parked(&id).await;
    stage.answer_review("reject", "ben").await;
    stage.answer_review("approve", "ann").await;
    stage.pass_ms(10_000).await;
    stage.pass_ms(50_000).await;
    stage.answer_review("approve", "tests").await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn review_by_an_agent(ground: Ground) -> Value {
    let mut stage = ground.stage(booking).await;
    stage.register(&[oas("auditor", ""), booker("oagent://auditor", "input_restriction")]).await;
    let id = stage.push(&job_of("booker")).await;
    stage.ended(&id).await;
    stage.recorded().await
}

async fn error_that_is_escalated(ground: Ground) -> Value {
    let mut stage = ground
        .stage(|request| match model_server::outcomes(request) {
            0 => Reply::call("broken", json!({})),
            _ => Reply::text("without it, then"),
        })
        .await;
    let spec = "  tools: [{type: http, name: broken, retry_policy: {max_attempts: 1}}]\n  \
                error_handlers: [{error_codes: [TOOL_ERROR], strategy: escalate, escalation_target: ann}]\n";
    stage.register(&[ossa("desk", spec)]).await;
    let id = stage.push(&job_of("desk")).await;
    stage.parked(&id).await;
    stage.answer_review("approve", "ann").await;
    stage.ended(&id).await;
    stage.recorded().await
}
