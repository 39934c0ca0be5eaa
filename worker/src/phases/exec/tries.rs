//! The record of a failed try of a call that continues.

use crate::state::Outbox;
use crate::state::journal::Call;
use serde_json::{Value, json};
use turnstone_domain::EventName;
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome, Tried};

/// The next try of a call.
pub enum NextTry {
    /// The same tool again: the number of this retry, and the delay in milliseconds. `fallback` names the tool, unless it
    /// is the one that the model requested.
    Again { retry: u32, delay_ms: u64, fallback: Option<String> },
    /// This tool instead.
    Instead(String),
}

/// Journals a failed try of a call that continues, and publishes it. The row is `planned` again, because no request is in
/// flight.
pub fn record(outbox: &mut Outbox, call: &Call, failed: &ToolOutcome, duration_ms: i64, next: NextTry) {
    let (tool, instead, facts) = match next {
        NextTry::Again { retry, delay_ms, fallback } => {
            (fallback, None, json!({"retry": retry, "delay_ms": delay_ms}))
        }
        NextTry::Instead(name) => (None, Some(name.clone()), json!({"instead": name})),
    };
    if let ToolOutcome::Error { code, .. } = failed {
        let (code, at) = (code.clone(), outbox.claimed.deps.clock.now());
        let (call_id, tried) = (call.asked.call_id.clone(), Tried { code, duration_ms, at, instead: tool });
        outbox.pending.tool_calls.push(ToolCallMove::Retry { call_id, tried, instead });
    }
    let mut data = failed.event_data().unwrap_or_default();
    data["call_id"] = json!(call.asked.call_id);
    data["name"] = json!(call.asked.name);
    if let (Some(data), Value::Object(facts)) = (data.as_object_mut(), facts) {
        data.extend(facts);
    }
    outbox.event(EventName::ToolRetrying, data);
}
