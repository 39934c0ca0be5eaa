//! Repeats calls of earlier turns on request (agent control, tool-retry), before the model is called.
//!
//! Each uses the call's own journal row, so an idempotent tool sees the key that it knows. The model knows
//! the first outcome already. The new one reaches it as a separate message, because a call has one answer
//! only.

use super::send::{self, Made};
use super::{admission, artifacts, delegate, tool_outcome};
use crate::phases::resol;
use crate::policy::{self, Act, Ruling};
use crate::state::journal::{self, Call, CallResult};
use crate::state::signals::{Signal, Signals};
use crate::state::tools::Callable;
use crate::state::{Bodies, Outbox, Stop, TurnHistory, pay};
use turnstone_domain::agent::Capability;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::tool_call::{ToolCall, ToolCallState, ToolOutcome};

/// Repeats the calls, one after the other. A call that an agent answers parks the job until that agent has
/// ended.
///
/// # Errors
/// As [`super::run`].
pub async fn again(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    signals: &Signals,
) -> Result<(), Stop> {
    if signals.lower(Signal::CallsAgain) {
        past.look_again(&outbox.claimed, outbox.position.turn).await?;
    }
    if past.again.is_empty() { Ok(()) } else { Box::pin(repeat(past, bodies, outbox)).await }
}

async fn repeat(past: &mut TurnHistory, bodies: &mut Bodies, outbox: &mut Outbox) -> Result<(), Stop> {
    // They are the first calls of their phase, so a pause that was acknowledged earlier stops them.
    outbox.barrier().await?;
    outbox.unless_draining()?;
    for row in std::mem::take(&mut past.again) {
        let name = row.provider.clone().unwrap_or_else(|| row.name.clone());
        let call = Call {
            asked: RequestedCall { call_id: row.call_id.clone(), name, arguments: row.input.clone() },
            position: usize::try_from(row.position).unwrap_or_default(),
            journalled: Some(row.state),
            stub_of: None,
        };
        let (name, of_turn) = (row.name.clone(), row.turn);
        let outcome = match delegate::is_one(&outbox.claimed, past, &call.asked) {
            true => delegate::repeat(past, bodies, outbox, call).await?,
            false => repeat_call(past, bodies, outbox, call, row).await?,
        };
        let text =
            format!("The call of `{name}` in turn {of_turn} was made again. Its outcome is now: {outcome}");
        past.say(outbox, Message::text(Role::System, text));
        outbox.barrier().await?;
    }
    past.replay_object(&outbox.claimed, outbox.position.turn).await
}

/// Repeats a call of an earlier turn, under the same checks as the first time. Returns the text for the model. Afterwards
/// the call's journal row has the new outcome.
///
/// # Errors
/// As [`super::run`].
async fn repeat_call(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    mut call: Call,
    row: ToolCall,
) -> Result<String, Stop> {
    let sends = admission::unknown_sends(&row);
    let is_sent = row.state == ToolCallState::Sent;
    if let Some(output) = policy::reported_result(past, &call, sends).filter(|_| is_sent) {
        let own = resol::capability(&outbox.claimed, bodies, &call.asked.name);
        let own = own.unwrap_or_else(|| Capability::named(call.asked.name.clone()));
        let outcome = ToolOutcome::Success { output: output.clone() };
        return tool_outcome::known_again(past, outbox, &call, &own, outcome.into()).await;
    }
    let callable = match repeatable(past, bodies, outbox, &call, &row).await? {
        Ok(callable) => callable,
        Err(refusal) => return Ok(tool_outcome::refused_again(outbox, &call, refusal)),
    };
    outbox.secure().await?;
    outbox.unless_frozen().await?;
    journal::record_sent(outbox, &mut call, callable.is_idempotent(), true);
    pay::barrier(outbox, vec![(call.asked.call_id.clone(), call.asked.name.clone())], 0).await?;
    let made = send::try_once(&outbox.claimed, outbox.secured()?, &call, &callable, None).await;
    let Made { mut outcome, duration_ms, artifacts, notes, .. } = made;
    tool_outcome::note_unread(outbox, &call, &notes);
    let files = artifacts::admit(past, outbox, &call, &mut outcome, artifacts).await?;
    let (capability, result) = (&callable.capability, CallResult { outcome, handled: None, duration_ms });
    let text = tool_outcome::known_again(past, outbox, &call, capability, result).await?;
    // Without a review of this output neither it nor its files are published.
    if !capability.output_restriction.restricts() {
        artifacts::put(outbox, &call, files, capability.collect_results);
    }
    Ok(text)
}

/// Returns the tool of a call that may be repeated, or the refusal.
async fn repeatable(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    call: &Call,
    row: &ToolCall,
) -> Result<Result<Callable, ToolOutcome>, Stop> {
    let callable = match admission::usable(&outbox.claimed, bodies, call) {
        Ok(callable) => callable,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if callable.tool.tokens().is_some() {
        let text = "calls of remote agents are not repeated; ask in a new turn";
        return Ok(Err(ToolOutcome::refused(FailureKind::Tool, text)));
    }
    let ruling = if row.state != ToolCallState::Sent {
        admission::unrestricted(past, outbox, call, &callable).await?
    } else if row.idempotent && callable.is_idempotent() {
        Ruling::Allow
    } else {
        policy::may(past, outbox, Act::Resend(call, admission::unknown_sends(row))).await?
    };
    Ok(match ruling {
        Ruling::Deny(refusal) => Err(refusal),
        Ruling::Allow | Ruling::Review => Ok(callable),
    })
}
