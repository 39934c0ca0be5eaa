//! The provider against a real server that replays recorded answers.

use super::*;
use crate::model::Model as _;
use crate::model::http::fixture::{picture_of_a_tool, provider, replay};
use serde_json::json;

/// Issue 16: a picture of a tool is part of its outcome.
#[tokio::test]
async fn a_picture_of_a_tool_is_in_its_outcome() {
    let server = replay(200, include_str!("samples/text.sse")).await;
    provider(&server, Box::new(Responses), json!({})).answer(&picture_of_a_tool()).await.unwrap();
    let output = json!([{"type": "input_text", "text": "seen"},
                        {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]);
    assert_eq!(server.seen(0).2["input"][2]["output"], output);
}
