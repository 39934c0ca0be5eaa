//! Errors of a whole turn that are submitted to a reviewer (RS-50, D2).

use super::{answer, open_review, push, register};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_tests::{Fleet, Reply};

/// RS-50: an unreachable model is submitted to a reviewer; an approval retries once, at the phase that failed.
#[tokio::test]
async fn an_approval_retries_once() {
    let well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&well);
    let fleet = Fleet::builder()
        .model(move |_: &Value| match answers.load(Ordering::SeqCst) {
            false => Reply::Status(400),
            true => Reply::text("better"),
        })
        .start()
        .await;
    register(
        &fleet,
        "  error_handlers:\n    - {error_codes: [LLM_ERROR], strategy: escalate, escalation_target: ann}",
    )
    .await;
    let id = push(&fleet).await;
    let parked = fleet.settled(&id).await;
    assert_eq!(parked["state"], "pending", "{parked:#}");
    let review = open_review(&fleet).await;
    assert_eq!(
        (&review["reviewer"], &review["question"]["error"]["ossa_code"]),
        (&json!("ann"), &json!("LLM_ERROR"))
    );
    assert_eq!(review["question"]["error"]["escalation"]["target"], "ann");
    well.store(true, Ordering::SeqCst);
    answer(&fleet, &review, "approve").await;
    let done = fleet.wait_for(&id, &super::ENDED).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("better")), "{done:#}");
    assert!(done["errors"].as_array().is_none_or(Vec::is_empty), "a question is no failure");
    fleet.end().await;
}

/// D2: silence rejects when the document sets a deadline.
#[tokio::test]
async fn silence_rejects() {
    let fleet = Fleet::builder().model(|_: &Value| Reply::Status(400)).start().await;
    register(
        &fleet,
        "  error_handlers:\n    - {error_codes: [LLM_ERROR], strategy: escalate}\n  safety: {human_in_loop: {enabled: true, timeout_seconds: 60}}",
    )
    .await;
    let id = push(&fleet).await;
    fleet.settled(&id).await;
    assert_eq!(open_review(&fleet).await["reviewer"], "operator");
    fleet.clock.advance_ms(60_000);
    fleet.tick().await;
    let done = fleet.wait_for(&id, &super::ENDED).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("OSSA_LLM_ERROR")),
        "{done:#}"
    );
    assert_eq!(fleet.models.calls().len(), 1);
    fleet.end().await;
}
