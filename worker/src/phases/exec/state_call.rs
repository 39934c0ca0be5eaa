//! Calls of the operations on the agent's own state (OSSA §3). They run in memory, so no request is sent and
//! no outcome can be lost. Intent and outcome are one row, durable with the next barrier.

use super::admission::MAX_CALLS;
use crate::model::ToolOffer;
use crate::state::journal::{self, Call};
use crate::state::{Claimed, Outbox, Stop, TurnHistory};
use turnstone_domain::agent::{AgentDefinition, StateMode, ToolChoice};
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall};
use turnstone_domain::session_state::{Buffer, Operation, TOOLS};
use turnstone_domain::tool_call::ToolOutcome;

/// Returns the operations that the model may call: all of them, when the agent keeps state. A tool of the
/// agent with the same name overrides an operation.
pub fn offers(agent: &AgentDefinition) -> Vec<ToolOffer> {
    if agent.state.mode == StateMode::Stateless || agent.tool_choice == ToolChoice::None {
        return Vec::new();
    }
    let own = TOOLS.iter().filter(|(name, _, _)| agent.capability(name).is_none());
    own.map(|(name, description, schema)| ToolOffer {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        input_schema: schema(),
    })
    .collect()
}

/// Returns true if a call is one of the operations on the agent's state.
pub fn is_one(agent: &AgentDefinition, name: &str) -> bool {
    Operation::is_one(name) && offers(agent).iter().any(|offer| offer.name == name)
}

/// Runs the operation of a call.
///
/// # Errors
/// [`Stop::Store`] and [`Stop::LeaseLost`].
pub async fn run(past: &mut TurnHistory, outbox: &mut Outbox, mut call: Call) -> Result<(), Stop> {
    let allowed = call.position < MAX_CALLS && outbox.claimed.may_call(outbox.position.tool_turns);
    let outcome = match allowed {
        true => outcome(&outbox.claimed, past, &call.asked).await?,
        false => ToolOutcome::refused(FailureKind::Validation, "no more tools may be called in this turn"),
    };
    let outcome = outbox.screen_outcome(&call.asked.name, outcome);
    let text = outcome.for_model();
    journal::plan(outbox, &mut call, true);
    journal::note_outcome(outbox, &call, &outcome.into(), false);
    past.say(outbox, Message::tool(call.asked.call_id, text));
    at_once(past, outbox).await
}

async fn outcome(
    claimed: &Claimed,
    past: &mut TurnHistory,
    requested: &RequestedCall,
) -> Result<ToolOutcome, Stop> {
    let operation = match Operation::read(&requested.name, &requested.arguments) {
        Ok(operation) => operation,
        Err(why) => {
            let text = format!("the arguments do not match the schema of `{}`: {why}", requested.name);
            return Ok(ToolOutcome::refused(FailureKind::ToolInput, text));
        }
    };
    let Some(scope) = past.state_scope(claimed) else {
        return Ok(ToolOutcome::refused(FailureKind::ToolNotFound, "this agent keeps no state"));
    };
    past.look_at_state(claimed, &scope).await?;
    let now = claimed.deps.clock.now();
    if past.buffer.as_ref().is_some_and(Buffer::looks_each_time) {
        let snapshot = claimed.deps.ledger.reads().state(&scope, now).await?;
        if let Some(buffer) = &mut past.buffer {
            buffer.see(snapshot);
        }
    }
    let Some(buffer) = &mut past.buffer else {
        return Ok(ToolOutcome::refused(FailureKind::State, "the state was not read"));
    };
    Ok(match buffer.apply(&operation, now) {
        Ok(mut output) => {
            // The version that was read, for another process that resumes the turn.
            output["version"] = buffer.version().into();
            ToolOutcome::Success { output }
        }
        Err(why) => ToolOutcome::failed("STATE_ERROR", why),
    })
}

/// Commits a change with the outcome of its call under `read_uncommitted`.
async fn at_once(past: &mut TurnHistory, outbox: &mut Outbox) -> Result<(), Stop> {
    let Some(scope) = past.state_scope(&outbox.claimed) else { return Ok(()) };
    let Some(buffer) = past.buffer.as_mut().filter(|buffer| buffer.writes_at_once()) else {
        return Ok(());
    };
    let Some(commit) = buffer.commit(&scope) else { return Ok(()) };
    buffer.committed();
    outbox.pending.state = Some(commit);
    outbox.barrier().await
}
