//! Calls of a fork: recorded outcomes stand for them, and nothing is called again unless the fork was asked to.

use super::MAX_CALLS;
use super::call::{self, Call};
use super::tell::{Over, tell};
use crate::phases::resol;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde_json::Value;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{ToolCall, ToolCallMove, ToolOutcome};
use turnstone_domain::{CallId, JobError};

/// Answers a call from the record; `false` when it is to be made, or refused, as any other.
///
/// # Errors
/// [`Stop::Fail`] when nothing is on record and nothing may be called.
pub async fn answered(turn: &mut Turn, position: usize, asked: &RequestedCall) -> Result<bool, Stop> {
    let Some(fork) = &turn.fork else { return Ok(false) };
    let live = fork.origin.live_tools;
    let row = turn.recalled_calls.iter().find(|row| row.call_id == asked.call_id);
    if row.is_some_and(|row| row.outcome.is_some() || row.sends > 0) || position >= MAX_CALLS {
        return Ok(false);
    }
    let mut call = Call {
        asked: asked.clone(),
        position,
        journalled: row.map(|row| row.state),
        stub_of: row.and_then(|row| row.stub_of.clone()),
    };
    let recorded = turn.fork.as_mut().and_then(|fork| fork.recorded.stand_in(&asked.name, &asked.arguments));
    let Some((recorded, outcome)) = recorded.and_then(|row| Some((row.clone(), row.outcome?))) else {
        if live || (turn.deputy(&asked.name).is_none() && call::callable(turn, &call, true).is_err()) {
            return Ok(false);
        }
        return Err(not_on_record(turn, &call).into());
    };
    call::watch_repetition(turn, &call)?;
    call.stub_of = Some(recorded.call_id.clone());
    call::plan(turn, &mut call, recorded.idempotent);
    let (call_id, of) = (call.asked.call_id.clone(), recorded.call_id.clone());
    turn.pending().tool_calls.push(ToolCallMove::StandIn { call_id, of });
    stand_in(turn, &call, recorded, outcome)?;
    turn.barrier().await?;
    Ok(true)
}

fn stand_in(turn: &mut Turn, call: &Call, recorded: ToolCall, outcome: ToolOutcome) -> Result<(), Stop> {
    let name = &call.asked.name;
    let own = resol::capability(turn, name).or_else(|| turn.agent.capability(name)).cloned();
    let capability = own.unwrap_or_else(|| Capability::named(name.clone()));
    let handed = turn.deputy(name).is_some_and(|deputy| deputy.terms.mode == DelegationMode::Handoff);
    if let (true, ToolOutcome::Success { output }, Some(fork)) = (handed, &outcome, &mut turn.fork) {
        fork.handed_over = Some((call.asked.call_id.clone(), output.clone()));
    }
    let over = Over::made(turn, call, &capability, outcome, recorded.handled, 0);
    tell(turn, call, over)
}

/// The recorded answer of an agent to which control was handed over in this turn, if it was.
pub fn handed_over(turn: &Turn, asked: &[RequestedCall]) -> Option<Value> {
    let fork = turn.fork.as_ref()?;
    let of_this = |id: &CallId| asked.iter().any(|call| call.call_id == *id);
    if let Some((_, answer)) = fork.handed_over.as_ref().filter(|(id, _)| of_this(id)) {
        return Some(answer.clone());
    }
    let stands = |row: &&ToolCall| {
        let mode = turn.deputy(&row.name).map(|deputy| deputy.terms.mode);
        row.stub_of.is_some() && of_this(&row.call_id) && mode == Some(DelegationMode::Handoff)
    };
    turn.recalled_calls.iter().filter(stands).find_map(|row| match &row.outcome {
        Some(ToolOutcome::Success { output }) => Some(output.clone()),
        _ => None,
    })
}

fn not_on_record(turn: &Turn, call: &Call) -> JobError {
    let (name, turn_number) = (&call.asked.name, turn.position.turn);
    let message = format!(
        "turn {turn_number} of this fork calls `{name}` with arguments for which nothing is on record, and nothing is called \
         for a fork; fork this engagement at turn {turn_number}, phase exec, with --live-tools to let it be called"
    );
    JobError { retryable: false, ..JobError::new(FailureKind::Tool, message) }
        .with("call_id", call.asked.call_id.as_str())
        .with("not_on_record", true)
}
