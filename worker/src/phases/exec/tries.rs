//! The record of a failed try of a call that continues.

use crate::state::Outbox;
use crate::state::journal::Call;
use turnstone_domain::event::{CallRetry, EventBody};
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
    let (tool, instead, again) = match next {
        NextTry::Again { retry, delay_ms, fallback } => (fallback, None, Some((retry, delay_ms))),
        NextTry::Instead(name) => (None, Some(name), None),
    };
    if let ToolOutcome::Error { code, .. } = failed {
        let (code, at) = (code.clone(), outbox.claimed.deps.clock.now());
        let (call_id, tried) = (call.asked.call_id.clone(), Tried { code, duration_ms, at, instead: tool });
        outbox.pending.tool_calls.push(ToolCallMove::Retry { call_id, tried, instead: instead.clone() });
    }
    let Some(failure) = failed.event_data() else { return };
    outbox.event(&EventBody::ToolRetrying(CallRetry {
        failure,
        call_id: call.asked.call_id.clone(),
        name: Some(call.asked.name.clone()),
        retry: again.map(|(retry, _)| retry),
        delay_ms: again.map(|(_, delay_ms)| delay_ms),
        instead,
    }));
}
