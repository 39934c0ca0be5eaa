//! Repeats calls of earlier turns on request (agent control, tool-retry), before the model is called.
//!
//! Each uses the call's own journal row, so an idempotent tool sees the key that it knows. The model knows
//! the first outcome already. The new one reaches it as a separate message, because a call has one answer
//! only.

use super::{call, delegate};
use crate::state::{Stop, Turn};
use crate::turn::signals::{Signal, Signals};
use turnstone_domain::message::{Message, RequestedCall, Role};

/// Repeats the calls, one after the other. A call that an agent answers parks the job until that agent has
/// ended.
///
/// # Errors
/// As [`super::run`].
pub async fn again(turn: &mut Turn, signals: &Signals) -> Result<(), Stop> {
    if signals.lower(Signal::CallsAgain) {
        turn.past.look_again(&turn.claimed, turn.outbox.position.turn).await?;
    }
    if turn.past.again.is_empty() { Ok(()) } else { Box::pin(repeat(turn)).await }
}

async fn repeat(turn: &mut Turn) -> Result<(), Stop> {
    // They are the first calls of their phase, so a pause that was acknowledged earlier stops them.
    turn.outbox.barrier().await?;
    turn.outbox.unless_draining()?;
    for row in std::mem::take(&mut turn.past.again) {
        let (name, of_turn) = (row.name.clone(), row.turn);
        let requested = RequestedCall {
            call_id: row.call_id.clone(),
            name: row.provider.clone().unwrap_or_else(|| name.clone()),
            arguments: row.input.clone(),
        };
        let outcome = match delegate::is_one(turn, &requested) {
            true => delegate::repeat(turn, &row, requested).await?,
            false => call::repeat(turn, row, requested).await?,
        };
        let text =
            format!("The call of `{name}` in turn {of_turn} was made again. Its outcome is now: {outcome}");
        turn.past.say(&turn.claimed, &mut turn.outbox, Message::text(Role::System, text));
        turn.outbox.barrier().await?;
    }
    turn.past.replay_object(&turn.claimed, turn.outbox.position.turn).await
}
