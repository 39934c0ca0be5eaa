//! NORM: the job's arguments become canonical messages (OSSA §1.2).

mod input;
mod memory;

pub use input::{IMAGE_TYPES, MOST_IMAGE_CHARS};

use crate::flow;
use crate::policy::guard;
use crate::state::{Claimed, Stop, Turn};
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::checkpoint::NormBody;
use turnstone_domain::message::{Message, Metadata, Source};
use turnstone_domain::{JobError, Spent};

/// Runs NORM: the job's first turn takes its input, later ones have none. Messages recalled from earlier
/// engagements precede the first input of an engagement (OAS-51).
///
/// # Errors
/// [`Stop::Store`], when those cannot be read. [`Stop::Fail`] when the input is larger than a conversation
/// can carry, or a filter of the agent blocks it: then no model is called (RS-08). [`Stop::Fail`] as well
/// when the input does not pass the agent's guardrail (OAS-41, OAS-46).
pub async fn run(turn: &mut Turn) -> Result<(), Stop> {
    if turn.node().is_some() {
        let messages = if turn.outbox.position.takes_input() {
            flow::say_inputs(&mut turn.past, &mut turn.outbox)?
        } else {
            0
        };
        turn.outbox.complete_phase(&NormBody { messages })?;
        turn.outbox.spent(Spent::default());
        return Ok(());
    }
    let mut inputs =
        if turn.outbox.position.takes_input() { inputs(&turn.outbox.claimed)? } else { Vec::new() };
    if turn.outbox.claimed.agent.guardrails.of(Side::Input).is_some() {
        Box::pin(guard::inputs(&turn.past, &mut turn.outbox, &inputs)).await?;
    }
    turn.outbox.screen_inputs(&mut inputs)?;
    if turn.outbox.position.takes_input() && turn.outbox.claimed.has_memory() {
        Box::pin(memory::recall(&mut turn.past, &mut turn.outbox)).await?;
    }
    let body = NormBody { messages: inputs.len() };
    for message in inputs {
        turn.past.say(&mut turn.outbox, message);
    }
    turn.outbox.complete_phase(&body)?;
    turn.outbox.spent(Spent::default());
    Ok(())
}

/// Returns the client's input, and below it the results of the preceding jobs, if this job is a step of a
/// workflow.
fn inputs(claimed: &Claimed) -> Result<Vec<Message>, JobError> {
    let (sent, original_format) = input::normalized(&claimed.job.args)?;
    let sent = match &claimed.job.parent_results {
        None => sent,
        Some(results) => input::with_results(sent, results),
    };
    let metadata = Metadata {
        source: source(claimed),
        original_format: original_format.to_owned(),
        normalized_at: claimed.deps.clock.now(),
    };
    Ok(sent.into_iter().map(|message| Message { metadata: Some(metadata.clone()), ..message }).collect())
}

/// Returns the source of the input (RS-07): another agent, a user whom the caller names, or a program.
fn source(claimed: &Claimed) -> Source {
    match claimed.depth {
        0 if claimed.engagement.user.is_known() => Source::User,
        0 => Source::Api,
        _ => Source::Delegation,
    }
}
