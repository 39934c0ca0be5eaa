//! The tokens that one turn may use: `constraints.max_tokens_per_turn` (RS-18).
//!
//! A turn uses the prompts and the answers of its model calls, the summary of the conversation included. The
//! limit holds as a budget does: the most that a call can use has to fit before the call is made.

use super::ask::Prepared;
use crate::state::{Bodies, Outbox, TurnHistory};
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;

/// Returns the tokens that a call may use by the engagement's budget and by the limit of the turn; `None` is
/// unlimited.
pub fn left(past: &TurnHistory, outbox: &Outbox) -> Option<i64> {
    outbox.budget.left().into_iter().chain(of_turn(past, outbox)).min()
}

/// Returns what is left of the turn's limit.
fn of_turn(past: &TurnHistory, outbox: &Outbox) -> Option<i64> {
    let (input, output) = past.conversation.summed_up_for(outbox.position.turn);
    let used = input.saturating_add(output);
    outbox.claimed.agent.limits.max_tokens_per_turn.map(|most| most.saturating_sub(used))
}

/// Cuts the answer of a call to what is left of the turn's limit after the prompt.
///
/// # Errors
/// [`FailureKind::MaxTokens`] when nothing is left for an answer: the call is not made.
pub fn fit(past: &TurnHistory, outbox: &Outbox, prepared: &mut Prepared) -> Result<(), JobError> {
    let Some(left) = of_turn(past, outbox) else { return Ok(()) };
    let room = left.saturating_sub(prepared.prompt_bound);
    if room < 1 {
        let needed = prepared.prompt_bound.saturating_add(1);
        return Err(exceeded(outbox, format!("may need up to {needed} tokens")));
    }
    prepared.request.max_tokens = prepared.request.max_tokens.min(room);
    Ok(())
}

/// Checks the turn's limit against the tokens that are booked for the turn: a provider may count more than it
/// was asked for.
///
/// # Errors
/// [`FailureKind::MaxTokens`].
pub fn check_used(past: &TurnHistory, bodies: &Bodies, outbox: &Outbox) -> Result<(), JobError> {
    let Some(left) = of_turn(past, outbox) else { return Ok(()) };
    let Some(used) = bodies.inferred.as_ref().map(|body| body.tokens_in.saturating_add(body.tokens_out))
    else {
        return Ok(());
    };
    if used <= left { Ok(()) } else { Err(exceeded(outbox, format!("used {used} tokens"))) }
}

fn exceeded(outbox: &Outbox, what: String) -> JobError {
    let most = outbox.claimed.agent.limits.max_tokens_per_turn.unwrap_or_default();
    let message = format!(
        "constraints.max_tokens_per_turn: the model call of turn {} {what}, prompt and answer, and the agent allows {most} in a \
         turn; raise the limit or shorten the input",
        outbox.position.turn
    );
    JobError::new(FailureKind::MaxTokens, message).with("max_tokens_per_turn", most)
}
