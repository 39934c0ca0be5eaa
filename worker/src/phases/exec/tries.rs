//! The record of a failed try of a call that continues.

use crate::state::Outbox;
use crate::state::journal::Call;
use turnstone_domain::event::{CallRetry, EventBody};
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

/// Records the event that a call continues after a failure: with a retry after a delay in milliseconds, or with another tool.
pub fn retrying(
    outbox: &mut Outbox,
    call: &Call,
    failed: &ToolOutcome,
    retry: Option<(u32, u64)>,
    instead: Option<String>,
) {
    let Some(failure) = failed.event_data() else { return };
    outbox.event(&EventBody::ToolRetrying(CallRetry {
        failure,
        call_id: call.asked.call_id.clone(),
        name: Some(call.asked.name.clone()),
        retry: retry.map(|(retry, _)| retry),
        delay_ms: retry.map(|(_, delay_ms)| delay_ms),
        instead,
    }));
}
