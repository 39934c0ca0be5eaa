//! EMIT: the record of the turn for the audit (OSSA §1.7).

use super::verdict::{Verdict, verdict};
use crate::policy::guard;
use crate::state::{Stop, Turn};
use turnstone_domain::Spent;
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::checkpoint::EmitBody;

/// Version 1 did not record if the answer is released.
/// Runs EMIT: one log line per turn, and the checkpoint that completes the turn.
///
/// # Errors
/// [`Stop::Fail`] when INFER's checkpoint cannot be read, or the answer does not pass the agent's guardrail
/// (OAS-46).
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    let inferred = turn.bodies.inferred()?;
    let verdict = if turn.flow.is_some() { None } else { Some(verdict(&turn.past, &turn.outbox, &inferred)) };
    let released = match verdict {
        Some(Ok(Verdict::Complete(result))) => {
            if turn.outbox.claimed.agent.guardrails.of(Side::Output).is_some() {
                Box::pin(guard::answer(&turn.past, &mut turn.outbox, &result)).await?;
            }
            true
        }
        // The other verdicts are handled once the turn is complete.
        _ => false,
    };
    let body = EmitBody {
        tokens_input: inferred.tokens_in,
        tokens_output: inferred.tokens_out,
        tool_calls: turn.past.conversation.answer().map_or(0, |answer| answer.tool_calls.len()),
        instance_id: turn.outbox.claimed.instance_id(),
        released,
    };
    tracing::debug!(
        job = %turn.outbox.claimed.job.id,
        engagement = %turn.outbox.claimed.engagement.id,
        turn = turn.outbox.position.turn,
        model = inferred.model,
        tokens_in = body.tokens_input,
        tokens_out = body.tokens_output,
        tool_calls = body.tool_calls,
        "turn complete"
    );
    turn.outbox.complete_phase(&body)?;
    turn.outbox.spent(Spent::default());
    Ok(())
}
