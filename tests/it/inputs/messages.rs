//! NORM: every input is a canonical message with its origin (RS-07, RS-09, RS-10).

use super::{conversation, desk, job};
use serde_json::json;
use turnstone_tests::Reply;

/// RS-07, RS-09, RS-10: mixed input becomes ordered parts with metadata, and is in the conversation.
#[tokio::test]
async fn mixed_input_has_ordered_parts_with_its_origin() {
    let fleet = desk("", |_| Reply::text("a cat")).await;
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let file = json!({"type": "file", "name": "a.csv", "content": "x;y", "media_type": "text/csv"});
    let id = fleet.push(&job(&json!(["What is this?", image, file]))).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let shown = conversation(&fleet, &id).await.remove(0);
    assert_eq!(shown["parts"], json!([{"type": "text", "text": "What is this?"}, image, file]));
    assert_eq!(
        (&shown["role"], &shown["metadata"]["source"], &shown["metadata"]["original_format"]),
        (&json!("user"), &json!("api"), &json!("multipart/mixed"))
    );
    assert!(shown["metadata"]["normalized_at"].as_str().unwrap().ends_with('Z'), "{shown:#}");
    let sent = fleet.models.calls()[0].request["messages"].to_string();
    assert!(sent.contains("What is this?") && sent.contains("x;y"), "{sent}");
    fleet.end().await;
}

/// RS-07: an input that exceeds every conversation ends the job without a model call.
#[tokio::test]
async fn an_input_that_is_too_large_calls_no_model() {
    let fleet = desk("", |_| Reply::text("never")).await;
    let tiff =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "aGk="}});
    let id = fleet.push(&job(&json!([tiff]))).await;
    let done = fleet.settled(&id).await;
    assert_eq!(
        (&done["state"], &done["error"]["code"]),
        (&json!("discarded"), &json!("AGENT_INVALID_PARAMETER"))
    );
    assert!(fleet.models.calls().is_empty());
    fleet.end().await;
}

/// The reservation for a picture is that of the most expensive known one, so a small budget has no room for it.
#[tokio::test]
async fn a_picture_counts_in_the_reservation() {
    let fleet = desk("", |_| Reply::text("a cat")).await;
    let image = json!({"type": "image", "source": {"type": "url", "media_type": "image/png", "data": "https://example.org/a.png"}});
    let mut small = job(&json!([image]));
    small["ext_agent_token_budget"] = 10_000.into();
    small["options"]["retry"]["max_attempts"] = 1.into();
    let id = fleet.push(&small).await;
    assert_eq!(fleet.settled(&id).await["error"]["code"], "AGENT_TOKEN_BUDGET_EXCEEDED");
    let mut large = small.clone();
    large["ext_agent_token_budget"] = 100_000.into();
    let id = fleet.push(&large).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    fleet.end().await;
}
