//! Repeats calls of earlier turns on request (agent control, tool-retry), before the model is called.
//!
//! Each uses the call's own journal row, so an idempotent tool sees the key that it knows. The model knows
//! the first outcome already. The new one reaches it as a separate message, because a call has one answer
//! only.

use super::identity::RemotePart;
use super::send::Made;
use super::{admission, artifacts, delegate, send, tool_outcome};
use crate::policy::restriction::{self, Checked};
use crate::state::journal::{self, Call};
use crate::state::signals::{Signal, Signals};
use crate::state::{Bodies, Outbox, Stop, TurnHistory, pay};
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
        let (name, of_turn) = (row.name.clone(), row.turn);
        let requested = RequestedCall {
            call_id: row.call_id.clone(),
            name: row.provider.clone().unwrap_or_else(|| name.clone()),
            arguments: row.input.clone(),
        };
        let outcome = match delegate::is_one(&outbox.claimed, past, &requested) {
            true => delegate::repeat(past, bodies, outbox, &row, requested).await?,
            false => repeat_call(past, bodies, outbox, row, requested).await?,
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
    row: ToolCall,
    requested: RequestedCall,
) -> Result<String, Stop> {
    let position = usize::try_from(row.position).unwrap_or_default();
    let mut call = Call { asked: requested, position, journalled: Some(row.state), stub_of: None };
    let (tool, capability) = match admission::usable(&outbox.claimed, bodies, &call) {
        Ok(found) => found,
        Err(refusal) => return Ok(tool_outcome::refused_again(outbox, &call, &refusal)),
    };
    if tool.tokens().is_some() {
        let text = "calls of remote agents are not repeated; ask in a new turn";
        return Ok(tool_outcome::refused_again(
            outbox,
            &call,
            &ToolOutcome::refused(FailureKind::Tool.code(), text),
        ));
    }
    if row.state == ToolCallState::Sent {
        let idempotent = row.idempotent && admission::is_idempotent(&tool, &capability);
        if !idempotent
            && !restriction::may_resend(past, outbox, &call, row.sends - admission::known_failures(&row))?
        {
            let text = "the outcome of this call is unknown: it may or may not have had its effect";
            return Ok(tool_outcome::refused_again(
                outbox,
                &call,
                &ToolOutcome::failed(FailureKind::Tool.code(), text),
            ));
        }
    } else if let Checked::Denied(refusal) = restriction::before(
        past,
        outbox,
        &call,
        &capability,
        admission::is_declared_idempotent(&tool, &capability),
    )? {
        return Ok(tool_outcome::refused_again(outbox, &call, &refusal));
    }
    outbox.secure().await?;
    outbox.unless_frozen().await?;
    journal::record_sent(outbox, &mut call, admission::is_idempotent(&tool, &capability), true);
    pay::barrier(outbox, vec![(call.asked.call_id.clone(), call.asked.name.clone())], 0).await?;
    let remote = RemotePart { call: &call.asked.call_id, set_aside: 0, handle: None };
    let made =
        send::try_once(&outbox.claimed, past, outbox.secured()?, &call, (&tool, &capability), remote).await;
    let Made { mut outcome, duration_ms, artifacts, .. } = made;
    let files = artifacts::admit(past, outbox, &call, &mut outcome, artifacts).await?;
    let text = tool_outcome::known_again(past, outbox, &call, &capability, outcome, duration_ms);
    // Without a review of this output neither it nor its files are published.
    if !capability.output_restriction.restricts() {
        artifacts::put(outbox, &call, files, capability.collect_results);
    }
    Ok(text)
}
