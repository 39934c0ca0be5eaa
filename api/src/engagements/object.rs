//! The Engagement object of an engagement, replayed from its tool journal in parts.

use serde_json::Value;
use turnstone_domain::AgentDefinition;
use turnstone_domain::engagement::{Engagement, EngagementObject};
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};
use turnstone_store::{Page, StoreError, Views};

/// Calls that are read at once.
const AT_ONCE: u32 = 100;
/// An object whose inputs and outputs have more bytes than this is not built for an answer.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Returns the object as expressions see it; `None` when it is too large to be built here.
pub(super) async fn of(
    views: &Views,
    engagement: &Engagement,
    agent: &AgentDefinition,
) -> Result<Option<EngagementObject>, StoreError> {
    let mut object = EngagementObject::begin(engagement, agent);
    let (mut page, mut bytes) = (Page { limit: AT_ONCE, offset: 0 }, 0_usize);
    loop {
        let calls = views.tool_calls_page(&engagement.id, page).await?;
        bytes += calls.iter().map(size).sum::<usize>();
        if bytes > MOST_BYTES {
            return Ok(None);
        }
        object.replay(&calls);
        if calls.len() < AT_ONCE as usize {
            return Ok(Some(object));
        }
        page.offset += AT_ONCE;
    }
}

/// Returns the bytes that a call adds to the object.
fn size(call: &ToolCall) -> usize {
    let output = match &call.outcome {
        Some(ToolOutcome::Success { output }) => output,
        _ => &Value::Null,
    };
    text_size(&call.input) + text_size(output)
}

/// About as many bytes as the value takes.
fn text_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(text_size).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + text_size(value) + 4).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
