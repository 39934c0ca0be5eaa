//! Passes the outcome of a call to the model, once it is known and every review has passed.

use crate::phases::resol;
use crate::policy::escalation::{self, Topic};
use crate::policy::{self, Act, Ruling};
use crate::state::journal::{self, Call, CallResult};
use crate::state::{Bodies, Outbox, Stop, TurnHistory};
use serde_json::{Value, json};
use turnstone_domain::JobError;
use turnstone_domain::agent::Capability;
use turnstone_domain::engagement::outputs_of;
use turnstone_domain::error::{FailureKind, Strategy};
use turnstone_domain::event::{EventBody, PartlyRead};
use turnstone_domain::message::Message;
use turnstone_domain::review::ReviewState;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};

/// The end of a call.
pub struct Over {
    /// Its result.
    pub result: CallResult,
    /// The way in which it ended.
    pub ending: Ending,
}

/// The way in which a call ended.
pub enum Ending {
    /// It was refused, and never ran.
    Refused,
    /// It ran. The fields hold the ruling about its output.
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
    pub fn recalled(row: ToolCall) -> Self {
        let nothing = || ToolOutcome::refused(FailureKind::Tool, "there is no answer");
        let (outcome, handled) = (row.outcome.unwrap_or_else(nothing), row.handled);
        let result = CallResult { outcome, handled, duration_ms: row.duration_ms.unwrap_or_default() };
        Self { result, ending: Ending::Recalled }
    }

    /// Journals the refusal of a call before it ran.
    pub fn refused(
        outbox: &mut Outbox,
        call: &mut Call,
        result: impl Into<CallResult>,
        idempotent: bool,
    ) -> Self {
        let result = result.into();
        journal::plan(outbox, call, idempotent);
        journal::note_outcome(outbox, call, &result, false);
        Self { result, ending: Ending::Refused }
    }

    /// Checks and journals the outcome of a call that ran.
    ///
    /// # Errors
    /// As [`policy::may`].
    pub async fn made(
        past: &TurnHistory,
        outbox: &mut Outbox,
        call: &Call,
        capability: &Capability,
        result: CallResult,
    ) -> Result<Self, Stop> {
        let act = Act::Output { call, capability, outcome: &result.outcome };
        let (denied, reviewed) = match policy::may(past, outbox, act).await? {
            Ruling::Allow => (None, None),
            Ruling::Deny(denial) => (Some(denial), None),
            Ruling::Review => (None, Some(Box::new(capability.clone()))),
        };
        let withheld = denied.is_some() || reviewed.is_some() || !capability.collect_results;
        journal::note_outcome(outbox, call, &result, withheld);
        Ok(Self { result, ending: Ending::Made { denied, reviewed, withheld } })
    }
}

/// Delivers the outcome of a call to the model as a message, or does instead what the agent's handler demands.
///
/// # Errors
/// [`Stop::Park`] when a reviewer has to be asked first, [`Stop::Fail`] when a handler aborts or a reviewer
/// rejected.
pub async fn deliver(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    call: &Call,
    Over { result, ending }: Over,
) -> Result<(), Stop> {
    if outbox.claimed.is_node {
        // No model receives it: the outcome is the result of the node.
        bodies.outcome = Some(result.outcome);
        return Ok(());
    }
    let outcome = &result.outcome;
    if let Ending::Made { withheld, .. } = &ending
        && let Some(object) = past.object.as_mut().filter(|_| outcome.was_invoked())
    {
        let outputs = if *withheld { Value::Null } else { outputs_of(outcome) };
        object.record(&call.asked.name, call.asked.arguments.clone(), outputs);
    }
    match result.handled.as_ref().map(|handled| handled.strategy) {
        Some(Strategy::Skip) => {
            let text = format!("`{}` could not be called; continue without its result", call.asked.name);
            past.say(outbox, Message::tool(call.asked.call_id.clone(), text));
            return Ok(());
        }
        Some(Strategy::Abort) => return Err(failed(call, outcome).into()),
        Some(Strategy::Escalate) => ask(past, outbox, call, outcome)?,
        Some(Strategy::Fallback | Strategy::Retry) | None => {}
    }
    let text = match ending {
        Ending::Made { denied: Some(denial), .. } => denial.for_model(),
        Ending::Made { reviewed: Some(capability), .. } => {
            let act = Act::Release { call, capability: &capability, outcome };
            return policy::may(past, outbox, act).await.map(drop);
        }
        Ending::Refused | Ending::Made { .. } => outcome.for_model(),
        Ending::Recalled => {
            let text = outcome.for_model();
            release(past, bodies, outbox, call, result).await?;
            text
        }
    };
    past.say(outbox, Message::tool(call.asked.call_id.clone(), text));
    Ok(())
}

/// Publishes an outcome that an earlier attempt settled, once its review has approved it.
///
/// # Errors
/// [`Stop::Park`] while its output waits for a review, [`Stop::Fail`] when the review rejected it.
async fn release(
    past: &mut TurnHistory,
    bodies: &Bodies,
    outbox: &mut Outbox,
    call: &Call,
    result: CallResult,
) -> Result<(), Stop> {
    let (name, outcome) = (&call.asked.name, &result.outcome);
    let capability = resol::capability(&outbox.claimed, bodies, name);
    let reviewed = capability.filter(|own| own.output_restriction.is_reviewed() && outcome.was_invoked());
    let Some(capability) = reviewed else { return Ok(()) };
    policy::may(past, outbox, Act::Release { call, capability: &capability, outcome }).await?;
    if capability.collect_results {
        if let Some(object) = &mut past.object {
            object.reveal(name, &outputs_of(outcome));
        }
        let settled = journal::settled(call, CallResult { handled: None, ..result }, false);
        outbox.pending.tool_calls.push(settled);
    }
    Ok(())
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
    let Some(contact) = outbox.claimed.agent.errors.contact(error.kind.class()) else {
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
            let decided = escalation::decided(Some(contact.target), state);
            Err(failed(call, outcome).escalated(decided).into())
        }
        Some(ReviewState::Open) | None => {
            outbox.event(&EventBody::ErrorEscalated(error.event_data()));
            Err(escalation::ask(past, outbox, topic, question, &contact))
        }
    }
}

/// Publishes the parts of an answer that could not be read as they were sent.
pub fn note_unread(outbox: &mut Outbox, call: &Call, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    let (call_id, name) = (call.asked.call_id.clone(), Some(call.asked.name.clone()));
    outbox.event(&EventBody::ToolPartlyRead(PartlyRead { call_id, name, message: Some(notes.join("; ")) }));
}

/// Journals the outcome of a repeated call; returns the text for the model.
///
/// # Errors
/// As [`policy::may`].
pub async fn known_again(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    capability: &Capability,
    mut result: CallResult,
) -> Result<String, Stop> {
    result.outcome = outbox.screen_outcome(&call.asked.name, result.outcome);
    let act = Act::Output { call, capability, outcome: &result.outcome };
    let ruling = policy::may(past, outbox, act).await?;
    // A reviewer decided about the first outcome; this one was not reviewed, so it is not published.
    let reviewed = capability.output_restriction.is_reviewed();
    let withheld = matches!(ruling, Ruling::Deny(_)) || reviewed || !capability.collect_results;
    journal::note_outcome(outbox, call, &result, withheld);
    Ok(match ruling {
        Ruling::Deny(denial) => denial.for_model(),
        _ if reviewed => "withheld, because a reviewer has to approve this output".to_owned(),
        _ => result.outcome.for_model(),
    })
}

/// Journals the reason why a call was not repeated; returns the text for the model.
pub fn refused_again(outbox: &mut Outbox, call: &Call, refusal: ToolOutcome) -> String {
    let text = refusal.for_model();
    journal::note_outcome(outbox, call, &refusal.into(), false);
    text
}
