//! Admits a call: the checks of its name, its arguments and its identity, and of the sequence of calls.

use super::identity;
use crate::phases::resol;
use crate::policy::{self, Act, Ruling};
use crate::state::journal::Call;
use crate::state::tools::Callable;
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory};
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};

/// The most calls of one answer that run; further calls are refused.
pub const MAX_CALLS: usize = 32;

/// Returns the number of requests of a call that were sent and are known to have failed.
pub fn known_failures(row: &ToolCall) -> i64 {
    // A circuit breaker refuses a call before a request is sent.
    let sent = row.tried.iter().filter(|tried| tried.code != FailureKind::CircuitOpen.code());
    i64::try_from(sent.count()).unwrap_or(0)
}

/// Returns the number of sends of a call whose outcome is not known.
pub fn unknown_sends(row: &ToolCall) -> i64 {
    row.sends - known_failures(row)
}

/// Returns true if these calls may run in parallel. The document must allow it for each of them, or say nothing
/// about a tool that is read-only. No restriction, review or `short_circuit` may depend on their order.
pub fn may_be_parallel(
    claimed: &Claimed,
    past: &TurnHistory,
    bodies: &Bodies,
    requested: &[RequestedCall],
) -> bool {
    past.short_circuit.is_none()
        && claimed.agent.approvals.is_default()
        && requested.iter().all(|call| {
            resol::callable(claimed, bodies, &call.name).is_some_and(|Callable { tool, capability }| {
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

/// Returns the tool of a call and its capability, after the checks of number, name, arguments and identity.
///
/// # Errors
/// The refusal, as the outcome for the model.
pub fn callable(bodies: &mut Bodies, outbox: &Outbox, call: &Call) -> Result<Callable, ToolOutcome> {
    within_number(call)?;
    if !outbox.claimed.may_call(outbox.position.tool_turns) {
        let text = format!("this agent has no tool `{}` in this turn", call.asked.name);
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound, text));
    }
    usable(&outbox.claimed, bodies, call)
}

/// Checks the number of the call among those of its answer.
///
/// # Errors
/// As [`callable`].
pub fn within_number(call: &Call) -> Result<(), ToolOutcome> {
    if call.position < MAX_CALLS {
        return Ok(());
    }
    let text = "too many tool calls in one answer; ask for fewer";
    Err(ToolOutcome::refused(FailureKind::Validation, text))
}

/// Returns the same without the limits of the turn, for a call of an earlier turn.
///
/// # Errors
/// As [`callable`].
pub fn usable(claimed: &Claimed, bodies: &mut Bodies, call: &Call) -> Result<Callable, ToolOutcome> {
    let name = &call.asked.name;
    not_forbidden(claimed, name)?;
    let offered = bodies.resolved().is_ok_and(|resolved| resolved.tools.contains(name));
    let found = resol::callable(claimed, bodies, name).zip(resol::offer(claimed, bodies, name));
    let Some((found, offer)) = found.filter(|_| offered) else {
        let text = format!("this agent has no tool `{name}`");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound, text));
    };
    // The agent's schema narrows that of the registry; it never replaces it.
    for schema in [&offer.input_schema, &found.tool.spec().input_schema] {
        fits(claimed, schema, call)?;
    }
    identity::available(claimed, &found)?;
    Ok(found)
}

/// Checks that the agent's document does not forbid a call (OSSA `autonomy`).
///
/// # Errors
/// As [`callable`].
pub fn not_forbidden(claimed: &Claimed, name: &str) -> Result<(), ToolOutcome> {
    let Some(setting) = claimed.agent.actions.forbids(name) else { return Ok(()) };
    let text = format!("`{name}` may not be called: {setting} of the agent forbids it");
    Err(ToolOutcome::refused(FailureKind::Policy, text))
}

/// Checks the arguments of a call against a schema.
///
/// # Errors
/// As [`callable`].
pub fn fits(claimed: &Claimed, schema: &serde_json::Value, call: &Call) -> Result<(), ToolOutcome> {
    claimed.deps.check(schema, &call.asked.arguments).map_err(|why| {
        let text = format!("the arguments do not match the schema of `{}`: {why}", call.asked.name);
        ToolOutcome::refused(FailureKind::ToolInput, text)
    })
}

/// Checks the restrictions of a call that is about to be sent.
///
/// # Errors
/// As [`policy::may`]: [`Stop::Park`] until its reviewers have approved.
pub async fn unrestricted(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    callable: &Callable,
) -> Result<Ruling, Stop> {
    let idempotent = callable.is_declared_idempotent();
    policy::may(past, outbox, Act::Call { call, capability: &callable.capability, idempotent }).await
}
