//! EMIT: the record of the turn for the audit (OSSA §1.7).

use super::verdict::{Verdict, verdict};
use crate::policy::{self, Act};
use crate::state::{Bodies, Outbox, Stop, TurnHistory};
use turnstone_domain::Spent;
use turnstone_domain::checkpoint::EmitBody;

/// Runs EMIT: one log line per turn, and the checkpoint that completes the turn.
///
/// # Errors
/// [`Stop::Fail`] when INFER's checkpoint cannot be read, or the answer does not pass the agent's guardrail
/// (OAS-46).
pub async fn run(past: &TurnHistory, bodies: &mut Bodies, outbox: &mut Outbox) -> Result<(), Stop> {
    let inferred = bodies.inferred()?;
    // The verdict on a node is the flow's; the others are handled once the turn is complete.
    let released = match outbox.place.is_none().then(|| verdict(past, outbox, &inferred)) {
        Some(Ok(Verdict::Complete(result))) => {
            policy::may(past, outbox, Act::Answer(&result)).await?;
            true
        }
        _ => false,
    };
    let body = EmitBody {
        tokens_input: inferred.tokens_in,
        tokens_output: inferred.tokens_out,
        tool_calls: past.conversation.answer().map_or(0, |answer| answer.tool_calls.len()),
        instance_id: outbox.claimed.instance_id(),
        released,
    };
    tracing::debug!(
        job = %outbox.claimed.job.id,
        engagement = %outbox.claimed.engagement.id,
        turn = outbox.position.turn,
        model = inferred.model,
        tokens_in = body.tokens_input,
        tokens_out = body.tokens_output,
        tool_calls = body.tool_calls,
        "turn complete"
    );
    outbox.complete_phase(&body)?;
    outbox.spent(Spent::default());
    Ok(())
}
