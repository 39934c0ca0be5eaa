//! Calls of a fork: recorded outcomes replace them, and none runs again unless the fork permits it.

use super::admission::{self, MAX_CALLS};
use super::tool_outcome::{Over, deliver};
use crate::phases::resol;
use crate::state::journal::{self, Call};
use crate::state::{Claimed, Outbox, Stop, Turn, TurnHistory};
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
pub async fn answered(turn: &mut Turn, position: usize, requested: &RequestedCall) -> Result<bool, Stop> {
    let Some(fork) = &turn.past.fork else { return Ok(false) };
    let live = fork.origin.live_tools;
    let row = turn.past.recalled_calls.iter().find(|row| row.call_id == requested.call_id);
    if row.is_some_and(|row| row.outcome.is_some() || row.sends > 0) || position >= MAX_CALLS {
        return Ok(false);
    }
    let mut call = Call {
        asked: requested.clone(),
        position,
        journalled: row.map(|row| row.state),
        stub_of: row.and_then(|row| row.stub_of.clone()),
    };
    let Some((recorded, outcome)) = on_record(&turn.outbox.claimed, &mut turn.past, requested).await? else {
        if live
            || (turn.outbox.claimed.delegate(&requested.name).is_none()
                && admission::callable(&mut turn.bodies, &turn.outbox, &call, true).is_err())
        {
            return Ok(false);
        }
        return Err(not_on_record(&turn.outbox, &call).into());
    };
    admission::watch_repetition(&turn.outbox.claimed, &mut turn.past, &call)?;
    call.stub_of = Some(recorded.call_id.clone());
    reviewed(&mut turn.past, &call.asked.call_id, &recorded.call_id);
    journal::plan(&mut turn.outbox, &mut call, recorded.idempotent);
    let (call_id, of) = (call.asked.call_id.clone(), recorded.call_id.clone());
    turn.outbox.pending.tool_calls.push(ToolCallMove::StandIn { call_id, of });
    stand_in(turn, &call, recorded, outcome)?;
    turn.outbox.barrier().await?;
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

fn stand_in(turn: &mut Turn, call: &Call, recorded: ToolCall, outcome: ToolOutcome) -> Result<(), Stop> {
    let name = &call.asked.name;
    let capability = resol::capability(&turn.outbox.claimed, &turn.bodies, name)
        .unwrap_or_else(|| Capability::named(name.clone()));
    let handed = turn
        .outbox
        .claimed
        .delegate(name)
        .is_some_and(|delegate| delegate.terms.mode == DelegationMode::Handoff);
    if let (true, ToolOutcome::Success { output }, Some(fork)) = (handed, &outcome, &mut turn.past.fork) {
        fork.handed_over = Some((call.asked.call_id.clone(), output.clone()));
    }
    let over = Over::made(&turn.past, &mut turn.outbox, call, &capability, outcome, recorded.handled, 0);
    deliver(turn, call, over)
}

/// Returns the recorded answer of the agent that took over control in this turn, if there is one.
pub fn handed_over(claimed: &Claimed, past: &TurnHistory, requested: &[RequestedCall]) -> Option<Value> {
    Some(handover(claimed, past, requested)?.1)
}

/// Returns the call that handed over control.
pub fn handed_over_by(claimed: &Claimed, past: &TurnHistory, requested: &[RequestedCall]) -> Option<CallId> {
    Some(handover(claimed, past, requested)?.0)
}

fn handover(claimed: &Claimed, past: &TurnHistory, requested: &[RequestedCall]) -> Option<(CallId, Value)> {
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
    JobError { retryable: false, ..JobError::new(FailureKind::Tool, message) }
        .with("call_id", call.asked.call_id.as_str())
        .with("not_on_record", true)
}
