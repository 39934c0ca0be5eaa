//! NORM: the job's arguments become canonical messages (OSSA §1.2).

mod input;
mod memory;

pub use input::{IMAGE_TYPES, MOST_IMAGE_CHARS};

use crate::flow;
use crate::policy::{self, Act};
use crate::state::{Claimed, Outbox, Stop, TurnHistory};
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
pub async fn run(past: &mut TurnHistory, outbox: &mut Outbox) -> Result<(), Stop> {
    let (takes_input, is_node) = (outbox.position.takes_input(), outbox.claimed.is_node);
    let messages = match takes_input {
        true if is_node => flow::say_inputs(past, outbox)?,
        _ if is_node => 0,
        _ => take_inputs(past, outbox, takes_input).await?,
    };
    outbox.complete_phase(&NormBody { messages })?;
    outbox.spent(Spent::default());
    Ok(())
}

/// Checks the input of the turn and adds it to the conversation; returns the number of its messages.
async fn take_inputs(past: &mut TurnHistory, outbox: &mut Outbox, takes_input: bool) -> Result<usize, Stop> {
    let mut inputs = if takes_input { inputs(&outbox.claimed)? } else { Vec::new() };
    policy::may(past, outbox, Act::Input(&mut inputs)).await?;
    if takes_input && outbox.claimed.has_memory() {
        Box::pin(memory::recall(past, outbox)).await?;
    }
    let count = inputs.len();
    inputs.into_iter().for_each(|message| past.say(outbox, message));
    Ok(count)
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
