//! A call of the turn, and its row in the tool journal: planned ([`plan`]), sent ([`record_sent`]), settled ([`note_outcome`]).
//!
//! These functions only add to the pending write; the caller runs the barriers.

use super::outbox::Outbox;
use turnstone_domain::CallId;
use turnstone_domain::event::{CallFailure, CallOutput, Called, EventBody};
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{Handled, ToolCallMove, ToolCallState, ToolOutcome};

/// The most bytes of an output inside its event; a longer output is read from the journal.
const SHOWN_OUTPUT: usize = 4096;

/// A call in progress.
pub struct Call {
    /// The model's request.
    pub asked: RequestedCall,
    /// Its position among the calls of the turn.
    pub position: usize,
    /// The state of its journal row, as recorded so far; `None` when there is no row yet.
    pub journalled: Option<ToolCallState>,
    /// In a fork: the recorded call whose outcome it reuses, so that it does not run.
    pub stub_of: Option<CallId>,
}

/// The result of a call that is over.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// Its outcome, as a handler may have changed it.
    pub outcome: ToolOutcome,
    /// The handler's action.
    pub handled: Option<Handled>,
    /// The duration of the last try, in milliseconds.
    pub duration_ms: i64,
}

impl From<ToolOutcome> for CallResult {
    /// Returns the result of a call that took no time and that no handler changed.
    fn from(outcome: ToolOutcome) -> Self {
        Self { outcome, handled: None, duration_ms: 0 }
    }
}

impl Call {
    /// Returns the write that adds a journal row for the call, in this turn.
    #[must_use]
    pub fn intend(&self, turn: i64, idempotent: bool, sent: bool) -> ToolCallMove {
        ToolCallMove::Intend {
            call_id: self.asked.call_id.clone(),
            turn,
            position: i64::try_from(self.position).unwrap_or(i64::MAX),
            name: self.asked.name.clone(),
            input: self.asked.arguments.clone(),
            idempotent,
            sent,
        }
    }
}

/// Journals a call as planned, unless it has a row: its request is not sent yet.
pub fn plan(outbox: &mut Outbox, call: &mut Call, idempotent: bool) {
    if call.journalled.is_none() {
        let intent = call.intend(outbox.position.turn, idempotent, false);
        outbox.pending.tool_calls.push(intent);
        call.journalled = Some(ToolCallState::Planned);
    }
}

/// Journals a call as sent: the caller sends the request directly after the next barrier. `publishes` adds the event
/// `tool.called`.
pub fn record_sent(outbox: &mut Outbox, call: &mut Call, idempotent: bool, publishes: bool) {
    let intent = match call.journalled {
        Some(_) => ToolCallMove::Send { call_id: call.asked.call_id.clone() },
        None => call.intend(outbox.position.turn, idempotent, true),
    };
    outbox.pending.tool_calls.push(intent);
    call.journalled = Some(ToolCallState::Sent);
    if publishes {
        called(outbox, call);
    }
}

/// Records the event `tool.called`. It precedes every event of the outcome.
pub fn called(outbox: &mut Outbox, call: &Call) {
    let RequestedCall { call_id, name, arguments } = call.asked.clone();
    outbox.event(&EventBody::ToolCalled(Called { call_id, name: Some(name), input: Some(arguments) }));
}

/// Returns the write that settles the row of a call.
pub fn settled(call: &Call, result: CallResult, withheld: bool) -> ToolCallMove {
    let CallResult { outcome, handled, duration_ms } = result;
    ToolCallMove::Settle { call_id: call.asked.call_id.clone(), outcome, handled, duration_ms, withheld }
}

/// Journals an outcome and records its event. A `withheld` output is in no event and in no view.
pub fn note_outcome(outbox: &mut Outbox, call: &Call, result: &CallResult, withheld: bool) {
    outbox.pending.tool_calls.push(settled(call, result.clone(), withheld));
    let CallResult { outcome, handled, duration_ms } = result;
    let (call_id, name, stub_of) =
        (call.asked.call_id.clone(), Some(call.asked.name.clone()), call.stub_of.clone());
    let (handled, duration_ms) = (handled.clone(), *duration_ms);
    let event = match outcome {
        ToolOutcome::Success { output } => {
            let bytes = output.to_string().len();
            let is_short = bytes <= SHOWN_OUTPUT;
            EventBody::ToolCompleted(CallOutput {
                call_id,
                name,
                duration_ms,
                output: (!withheld && is_short).then(|| output.clone()),
                output_bytes: (!withheld && !is_short).then_some(bytes),
                stub_of,
                handled,
            })
        }
        ToolOutcome::Error { .. } => {
            let Some(failure) = outcome.event_data() else { return };
            EventBody::ToolFailed(CallFailure { failure, call_id, name, stub_of, handled })
        }
    };
    outbox.event(&event);
}
