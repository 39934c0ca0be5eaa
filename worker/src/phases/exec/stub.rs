//! Calls of a fork: recorded outcomes replace them, and none runs again unless the fork permits it.

use super::admission::{self, MAX_CALLS};
use super::tool_outcome::{Over, deliver};
use crate::phases::resol;
use crate::state::journal::{self, Call, CallResult};
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory};
use serde_json::Value;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::review::ReviewAnswer;
use turnstone_domain::tool_call::{ToolCall, ToolCallMove, ToolOutcome};
use turnstone_domain::{CallId, JobError};

/// Answers a call from the record; returns false when the call must run, or be refused, like any other.
///
/// # Errors
/// [`Stop::Fail`] when there is no record and the call may not run.
pub async fn answered(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    call: &mut Call,
) -> Result<bool, Stop> {
    let Some(fork) = &past.fork else { return Ok(false) };
    let live = fork.origin.live_tools;
    let is_sent = |row: &ToolCall| row.outcome.is_some() || row.sends > 0;
    if past.row(&call.asked.call_id).is_some_and(is_sent) || call.position >= MAX_CALLS {
        return Ok(false);
    }
    let Some((recorded, outcome)) = on_record(&outbox.claimed, past, &call.asked).await? else {
        let is_delegates = outbox.claimed.delegate(&call.asked.name).is_some();
        if live || (!is_delegates && admission::callable(bodies, outbox, call).is_err()) {
            return Ok(false);
        }
        return Err(not_on_record(outbox, call).into());
    };
    admission::watch_repetition(&outbox.claimed, past, call)?;
    call.stub_of = Some(recorded.call_id.clone());
    reviewed(past, &call.asked.call_id, &recorded.call_id);
    journal::plan(outbox, call, recorded.idempotent);
    let (call_id, of) = (call.asked.call_id.clone(), recorded.call_id);
    outbox.pending.tool_calls.push(ToolCallMove::StandIn { call_id, of });
    let result = CallResult { outcome, handled: recorded.handled, duration_ms: 0 };
    stand_in(past, bodies, outbox, call, result).await?;
    outbox.barrier().await?;
    Ok(true)
}

/// Returns the recorded call that replaces this one, with its outcome or the fork's changed one.
async fn on_record(
    claimed: &Claimed,
    past: &mut TurnHistory,
    requested: &RequestedCall,
) -> Result<Option<(ToolCall, ToolOutcome)>, Stop> {
    let Some(fork) = &mut past.fork else { return Ok(None) };
    let Some(known) = fork.recorded.stand_in(&requested.name, &requested.arguments) else { return Ok(None) };
    let set = fork.origin.changes.tool_results.get(known.call_id.as_str()).cloned();
    let row = claimed.deps.ledger.reads().recorded_call(&claimed.job.id, &known.call_id).await?;
    Ok(row.and_then(|mut row| {
        if set.is_some() {
            (row.outcome, row.handled) = (set, None);
        }
        let outcome = row.outcome.clone()?;
        Some((row, outcome))
    }))
}

/// Applies the recorded reviews to calls that were replaced before this worker claimed the job.
pub fn recalled(past: &mut TurnHistory) {
    let stubs: Vec<(CallId, CallId)> = past
        .recalled_calls
        .iter()
        .filter_map(|row| Some((row.call_id.clone(), row.stub_of.clone()?)))
        .collect();
    stubs.iter().for_each(|(call, of)| reviewed(past, call, of));
}

/// Applies the reviews of a recorded call to the call that it replaces, unless the fork changed the outcome.
/// So no reviewer answers again, and no reviewing agent is paid again.
fn reviewed(past: &mut TurnHistory, call: &CallId, of: &CallId) {
    let Some(fork) = &past.fork else { return };
    if fork.origin.changes.tool_results.contains_key(of.as_str()) {
        return;
    }
    let answer = |known| ReviewAnswer { call_id: call.clone(), ..known };
    let decided = fork.recorded.decided(of).into_iter().map(answer);
    // Reviews of the call itself take precedence.
    let decided: Vec<_> = decided.chain(std::mem::take(&mut past.reviews)).collect();
    past.reviews = decided;
}

async fn stand_in(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    call: &Call,
    result: CallResult,
) -> Result<(), Stop> {
    let name = &call.asked.name;
    let capability = resol::capability(&outbox.claimed, bodies, name);
    let capability = capability.unwrap_or_else(|| Capability::named(name.clone()));
    let delegate = outbox.claimed.delegate(name);
    let handed = delegate.is_some_and(|delegate| delegate.terms.mode == DelegationMode::Handoff);
    if let (true, ToolOutcome::Success { output }, Some(fork)) = (handed, &result.outcome, &mut past.fork) {
        fork.handed_over = Some((call.asked.call_id.clone(), output.clone()));
    }
    let over = Over::made(past, outbox, call, &capability, result).await?;
    deliver(past, bodies, outbox, call, over).await
}

/// Returns the call that handed over control in this turn, and the recorded answer of the agent that took over.
pub fn handover(
    claimed: &Claimed,
    past: &TurnHistory,
    requested: &[RequestedCall],
) -> Option<(CallId, Value)> {
    let fork = past.fork.as_ref()?;
    let of_this = |id: &CallId| requested.iter().any(|call| call.call_id == *id);
    if let Some(known) = fork.handed_over.as_ref().filter(|(id, _)| of_this(id)) {
        return Some(known.clone());
    }
    let stands = |row: &&ToolCall| {
        let mode = claimed.delegate(&row.name).map(|delegate| delegate.terms.mode);
        row.stub_of.is_some() && of_this(&row.call_id) && mode == Some(DelegationMode::Handoff)
    };
    past.recalled_calls.iter().filter(stands).find_map(|row| match &row.outcome {
        Some(ToolOutcome::Success { output }) => Some((row.call_id.clone(), output.clone())),
        _ => None,
    })
}

fn not_on_record(outbox: &Outbox, call: &Call) -> JobError {
    let (name, turn_number) = (&call.asked.name, outbox.position.turn);
    let message = format!(
        "turn {turn_number} of this fork calls `{name}` with arguments for which nothing is on record, and nothing is called \
         for a fork; fork this engagement at turn {turn_number}, phase exec, with --live-tools to let it be called"
    );
    JobError::new(FailureKind::Tool, message)
        .for_good()
        .with("call_id", call.asked.call_id.as_str())
        .with("not_on_record", true)
}
