//! Admits a call: the checks of its name, its arguments and its identity, and of the sequence of calls.

use super::identity;
use crate::phases::resol;
use crate::state::journal::Call;
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory};
use crate::tool::Tool;
use std::sync::Arc;
use turnstone_domain::JobError;
use turnstone_domain::agent::Capability;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};

/// The most calls of one answer that run; further calls are refused.
pub const MAX_CALLS: usize = 32;

/// Returns true if a call may run twice under the same idempotency key: the tool is declared idempotent, or its MCP server
/// announces that it is.
pub fn is_idempotent(tool: &Arc<dyn Tool>, capability: &Capability) -> bool {
    is_declared_idempotent(tool, capability) || tool.announces_idempotence()
}

/// Returns true if the configuration or the agent's document (OSSA `idempotency`) declares a tool idempotent. Reviews
/// rely on this declaration alone, and on no announcement of a server.
pub fn is_declared_idempotent(tool: &Arc<dyn Tool>, capability: &Capability) -> bool {
    tool.spec().idempotent || capability.errors.idempotent
}

/// Returns the number of requests of a call that were sent and are known to have failed.
pub fn known_failures(row: &ToolCall) -> i64 {
    // A circuit breaker refuses a call before a request is sent.
    let sent = row.tried.iter().filter(|tried| tried.code != FailureKind::CircuitOpen.code());
    i64::try_from(sent.count()).unwrap_or(0)
}

/// Returns true if these calls may run in parallel. The document must allow it for each of them, or say nothing
/// about a tool that is read-only. No restriction, review or `short_circuit` may depend on their order.
pub fn may_be_parallel(
    claimed: &Claimed,
    past: &TurnHistory,
    bodies: &Bodies,
    requested: &[(usize, RequestedCall)],
) -> bool {
    past.short_circuit.is_none()
        && claimed.agent.approvals.is_default()
        && requested.iter().all(|(_, call)| {
            resol::callable(claimed, bodies, &call.name).is_some_and(|(tool, capability)| {
                capability.parallel.unwrap_or_else(|| tool.is_read_only()) && !capability.is_restricted()
            })
        })
}

/// Counts the call for `short_circuit`: the agent's document names how often the same sequence of calls may repeat
/// (OAS-53). A call with a journal row was counted when the claim was taken.
///
/// # Errors
/// [`Stop::Fail`] at the repetition that the document forbids, which ends the engagement.
pub fn watch_repetition(claimed: &Claimed, past: &mut TurnHistory, call: &Call) -> Result<(), Stop> {
    if call.journalled.is_some() {
        return Ok(());
    }
    let Some(watch) = &mut past.short_circuit else { return Ok(()) };
    if !watch.attempt(&call.asked.name) {
        return Ok(());
    }
    let message = format!(
        "short_circuit {}: the agent repeats the same calls, last `{}`; the engagement is ended",
        claimed.agent.short_circuit.unwrap_or_default(),
        call.asked.name
    );
    Err(JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-53").into())
}

/// Returns the tool of a call and its capability, after the checks of name, arguments and identity. `allowed` is false for a
/// call beyond the permitted number.
///
/// # Errors
/// The refusal, as the outcome for the model.
pub fn callable(
    bodies: &mut Bodies,
    outbox: &Outbox,
    call: &Call,
    allowed: bool,
) -> Result<(Arc<dyn Tool>, Capability), ToolOutcome> {
    let name = &call.asked.name;
    if !allowed {
        return Err(ToolOutcome::refused(
            FailureKind::Validation.code(),
            "too many tool calls in one answer; ask for fewer",
        ));
    }
    if !outbox.claimed.may_call(outbox.position.tool_turns) {
        let text = format!("this agent has no tool `{name}` in this turn");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound.code(), text));
    }
    usable(&outbox.claimed, bodies, call)
}

/// Returns the same without the limits of the turn, for a call of an earlier turn.
pub fn usable(
    claimed: &Claimed,
    bodies: &mut Bodies,
    call: &Call,
) -> Result<(Arc<dyn Tool>, Capability), ToolOutcome> {
    let name = &call.asked.name;
    if let Some(refusal) = forbidden(claimed, name) {
        return Err(refusal);
    }
    let offered = bodies.resolved().is_ok_and(|resolved| resolved.tools.contains(name));
    let found = resol::callable(claimed, bodies, name).zip(resol::offer(claimed, bodies, name));
    let Some(((tool, capability), offer)) = found.filter(|_| offered) else {
        let text = format!("this agent has no tool `{name}`");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound.code(), text));
    };
    // The agent's schema narrows that of the registry; it never replaces it.
    let checked = [&offer.input_schema, &tool.spec().input_schema]
        .into_iter()
        .try_for_each(|schema| claimed.deps.check(schema, &call.asked.arguments));
    if let Err(why) = checked {
        let text = format!("the arguments do not match the schema of `{name}`: {why}");
        return Err(ToolOutcome::refused(FailureKind::ToolInput.code(), text));
    }
    if let Some(refusal) = identity::refusal(claimed, &capability, &*tool) {
        return Err(refusal);
    }
    Ok((tool, capability))
}

/// Returns the refusal of a call that the agent's document forbids (OSSA `autonomy`).
pub fn forbidden(claimed: &Claimed, name: &str) -> Option<ToolOutcome> {
    let setting = claimed.agent.actions.forbids(name)?;
    let text = format!("`{name}` may not be called: {setting} of the agent forbids it");
    Some(ToolOutcome::refused(FailureKind::Policy.code(), text))
}
