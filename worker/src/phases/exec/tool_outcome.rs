//! Passes the outcome of a call to the model, once it is known and every review has passed.

use crate::phases::resol;
use crate::policy::escalation::{self, Topic};
use crate::policy::restriction;
use crate::state::journal::{self, Call};
use crate::state::{Bodies, Outbox, Stop, Turn, TurnHistory};
use serde_json::{Value, json};
use turnstone_domain::JobError;
use turnstone_domain::agent::Capability;
use turnstone_domain::engagement::outputs_of;
use turnstone_domain::error::{Escalation, EscalationType, FailureKind, Strategy};
use turnstone_domain::event::EventBody;
use turnstone_domain::message::Message;
use turnstone_domain::review::ReviewState;
use turnstone_domain::tool_call::{Handled, ToolOutcome};

/// The end of a call.
pub struct Over {
    /// Its outcome, as a handler may have changed it.
    pub outcome: ToolOutcome,
    /// The handler's action.
    pub handled: Option<Handled>,
    /// The duration of the last try, in milliseconds.
    pub duration_ms: i64,
    /// The way in which it ended.
    pub ending: Ending,
}

/// The way in which a call ended.
pub enum Ending {
    /// It was refused, and never ran.
    Refused,
    /// It ran. The fields hold the result of its output restriction.
    Made {
        /// The denial by the assertion.
        denied: Option<ToolOutcome>,
        /// The capability, when a reviewer has to approve.
        reviewed: Option<Box<Capability>>,
        /// True if the output stays out of every view.
        withheld: bool,
    },
    /// The journal already held its outcome.
    Recalled,
}

impl Over {
    /// Returns the end of a call whose outcome the journal holds.
    pub fn recalled(outcome: ToolOutcome, handled: Option<Handled>, duration_ms: i64) -> Self {
        Self { outcome, handled, duration_ms, ending: Ending::Recalled }
    }

    /// Checks and journals the outcome of a call that ran.
    pub fn made(
        past: &TurnHistory,
        outbox: &mut Outbox,
        call: &Call,
        capability: &Capability,
        outcome: ToolOutcome,
        handled: Option<Handled>,
        duration_ms: i64,
    ) -> Self {
        let denied = restriction::after(&outbox.claimed, past, call, capability, &outcome);
        // The review may be approved already, by the recorded call in a fork or by the record in a rerun.
        let reviewed = capability.output_restriction.is_reviewed()
            && denied.is_none()
            && !restriction::is_output_approved(past, call, capability);
        let withheld = denied.is_some() || reviewed || !capability.collect_results;
        let reviewed = reviewed.then(|| Box::new(capability.clone()));
        let over =
            Self { outcome, handled, duration_ms, ending: Ending::Made { denied, reviewed, withheld } };
        over.note(outbox, call, withheld);
        over
    }

    /// Journals the outcome.
    pub fn note(&self, outbox: &mut Outbox, call: &Call, withheld: bool) {
        journal::note_outcome(outbox, call, &self.outcome, self.handled.clone(), self.duration_ms, withheld);
    }
}

/// Delivers the outcome of a call to the model as a message, or does instead what the agent's handler demands.
///
/// # Errors
/// [`Stop::Park`] when a reviewer has to be asked first, [`Stop::Fail`] when a handler aborts or a reviewer
/// rejected.
pub fn deliver(turn: &mut Turn, call: &Call, over: Over) -> Result<(), Stop> {
    let Over { outcome, handled, duration_ms, ending } = over;
    if let Some(node) = turn.flow.as_mut().and_then(|run| run.node.as_mut()) {
        // No model receives it: the outcome is the result of the node.
        node.outcome = Some(outcome);
        return Ok(());
    }
    if let Ending::Made { withheld, .. } = &ending
        && let Some(object) = turn.past.object.as_mut().filter(|_| outcome.was_invoked())
    {
        let outputs = if *withheld { Value::Null } else { outputs_of(&outcome) };
        object.record(&call.asked.name, call.asked.arguments.clone(), outputs);
    }
    match handled.as_ref().map(|handled| handled.strategy) {
        Some(Strategy::Skip) => {
            let text = format!("`{}` could not be called; continue without its result", call.asked.name);
            say(&mut turn.past, &mut turn.outbox, call, text);
            return Ok(());
        }
        Some(Strategy::Abort) => return Err(failed(call, &outcome).into()),
        Some(Strategy::Escalate) => ask(&turn.past, &mut turn.outbox, call, &outcome)?,
        Some(Strategy::Fallback | Strategy::Retry) | None => {}
    }
    match ending {
        Ending::Refused => say(&mut turn.past, &mut turn.outbox, call, outcome.for_model()),
        Ending::Recalled => {
            release(&mut turn.past, &turn.bodies, &mut turn.outbox, call, outcome, duration_ms)?
        }
        Ending::Made { denied: Some(denial), .. } => {
            say(&mut turn.past, &mut turn.outbox, call, denial.for_model())
        }
        Ending::Made { reviewed: Some(capability), .. } => {
            restriction::review_output(&turn.past, &turn.outbox, call, &capability, &outcome)?;
        }
        Ending::Made { .. } => say(&mut turn.past, &mut turn.outbox, call, outcome.for_model()),
    }
    Ok(())
}

fn say(past: &mut TurnHistory, outbox: &mut Outbox, call: &Call, text: String) {
    past.say(outbox, Message::tool(call.asked.call_id.clone(), text));
}

/// Returns the failed call as the job's own failure: no further attempt can change it.
fn failed(call: &Call, outcome: &ToolOutcome) -> JobError {
    let error =
        outcome.as_error().unwrap_or_else(|| JobError::new(FailureKind::Tool, "a handler ended the job"));
    let message =
        format!("the call of `{}` ended the job, as its handler says: {}", call.asked.name, error.message);
    JobError { message, retryable: false, ..error }.with("call_id", call.asked.call_id.as_str())
}

/// Escalates the error to the contact in the agent's document. Returns once the contact permits the job to
/// continue.
fn ask(past: &TurnHistory, outbox: &mut Outbox, call: &Call, outcome: &ToolOutcome) -> Result<(), Stop> {
    let Some(error) = outcome.as_error() else { return Ok(()) };
    let Some(contact) = outbox.claimed.agent.errors.contact(error.kind.ossa()) else {
        outbox.event(&EventBody::ErrorEscalated(error.event_data()));
        return Ok(());
    };
    let question = json!({"name": call.asked.name, "call_id": call.asked.call_id, "inputs": call.asked.arguments,
        "error": error.event_data(), "approve_means": "report the error to the model and continue",
        "reject_means": "end the job with the error"});
    let topic = Topic::error(error.kind, call.asked.call_id.clone());
    match escalation::answer(past, &topic) {
        Some(ReviewState::Approved) => Ok(()),
        Some(state @ (ReviewState::Rejected | ReviewState::Expired)) => {
            let (target, context) = (Some(contact.target.clone()), Some(json!({"state": state})));
            let decided = Escalation { to: EscalationType::Human, target, context };
            Err(failed(call, outcome).escalated(decided).into())
        }
        Some(ReviewState::Open) | None => {
            outbox.event(&EventBody::ErrorEscalated(error.event_data()));
            Err(escalation::ask(past, outbox, topic, question, &contact))
        }
    }
}

/// Journals the outcome of a repeated call; returns the text for the model.
pub fn known_again(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    capability: &Capability,
    outcome: ToolOutcome,
    duration_ms: i64,
) -> String {
    let outcome = outbox.screen_outcome(&call.asked.name, outcome);
    let denied = restriction::after(&outbox.claimed, past, call, capability, &outcome);
    // A reviewer decided about the first outcome; this one was not reviewed, so it is not published.
    let reviewed = capability.output_restriction.is_reviewed();
    let withheld = denied.is_some() || reviewed || !capability.collect_results;
    journal::note_outcome(outbox, call, &outcome, None, duration_ms, withheld);
    match denied {
        Some(denial) => denial.for_model(),
        None if reviewed => "withheld, because a reviewer has to approve this output".to_owned(),
        None => outcome.for_model(),
    }
}

/// Journals the reason why a call was not repeated; returns the text for the model.
pub fn refused_again(outbox: &mut Outbox, call: &Call, refusal: &ToolOutcome) -> String {
    journal::note_outcome(outbox, call, refusal, None, 0, false);
    refusal.for_model()
}

/// Delivers an outcome that an earlier attempt settled to the model.
///
/// # Errors
/// [`Stop::Park`] while its output waits for a review, [`Stop::Fail`] when the review rejected it.
pub fn release(
    past: &mut TurnHistory,
    bodies: &Bodies,
    outbox: &mut Outbox,
    call: &Call,
    outcome: ToolOutcome,
    duration_ms: i64,
) -> Result<(), Stop> {
    if let Some(capability) = resol::capability(&outbox.claimed, bodies, &call.asked.name)
        && capability.output_restriction.is_reviewed()
        && outcome.was_invoked()
    {
        restriction::review_output(past, outbox, call, &capability, &outcome)?;
        if capability.collect_results {
            let step = journal::settled(call, &outcome, None, duration_ms, false);
            outbox.pending.tool_calls.push(step);
            if let Some(object) = &mut past.object {
                object.reveal(&call.asked.name, &outputs_of(&outcome));
            }
        }
    }
    past.say(outbox, Message::tool(call.asked.call_id.clone(), outcome.for_model()));
    Ok(())
}
