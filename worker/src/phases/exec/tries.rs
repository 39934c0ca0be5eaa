//! The record of a failed try of a call that continues.

use crate::state::Outbox;
use crate::state::journal::Call;
use serde_json::{Value, json};
use turnstone_domain::EventName;
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome, Tried};

/// Journals a failed try of a call that continues. Its row is `planned` again, because no request is in flight.
pub fn tried(
    outbox: &mut Outbox,
    call: &Call,
    failed: &ToolOutcome,
    duration_ms: i64,
    replaced: Option<String>,
    instead: Option<String>,
) {
    let ToolOutcome::Error { code, .. } = failed else { return };
    let (code, at) = (code.clone(), outbox.claimed.deps.clock.now());
    let tried = Tried { code, duration_ms, at, instead: replaced };
    let step = ToolCallMove::Retry { call_id: call.asked.call_id.clone(), tried, instead };
    outbox.pending.tool_calls.push(step);
}

/// Records the event that a call continues after a failure.
pub fn retrying(outbox: &mut Outbox, call: &Call, failed: &ToolOutcome, facts: Value) {
    let mut data = failed.event_data().unwrap_or_default();
    data["call_id"] = json!(call.asked.call_id);
    data["name"] = json!(call.asked.name);
    if let (Some(data), Value::Object(facts)) = (data.as_object_mut(), facts) {
        data.extend(facts);
    }
    outbox.event(EventName::ToolRetrying, data);
}
