//! The next step after a failed delegate (OSSA §2, §5, RS-50).
//!
//! The terms of the delegation come first (`on_failure: retry` or `fallback`), then the agent's handler for
//! `DELEGATION_FAILED`, and a reviewer last. Without a handler and without a reviewer the model receives the failure.

use crate::policy::escalation::{self, Topic};
use crate::state::claimed::KnownDelegate;
use crate::state::journal::Call;
use crate::state::{Claimed, Outbox, Stop, TurnHistory};
use serde_json::json;
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::delegation::{DelegationState, OnFailure, RETRIES};
use turnstone_domain::agent::errors::ErrorHandler;
use turnstone_domain::error::{ErrorClass, FailureKind, Strategy};
use turnstone_domain::event::EventBody;
use turnstone_domain::review::{ReviewAnswer, ReviewKind, ReviewState};
use turnstone_domain::tool_call::{Handled, ToolOutcome};
use turnstone_store::Delegated;

/// The next step after a failed delegate.
pub enum Aftermath {
    /// This agent is called.
    Ask(Arc<AgentDefinition>),
    /// The call has this outcome, as a handler may have changed it.
    Outcome(ToolOutcome, Option<Handled>),
}

/// Decides what follows after the last of these tries failed with this outcome.
///
/// # Errors
/// [`Stop::Park`] while a reviewer decides, [`Stop::Fail`] after a no.
pub fn aftermath(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    tries: &[Delegated],
    outcome: ToolOutcome,
) -> Result<Aftermath, Stop> {
    if let Some(agent) = next(&outbox.claimed, call, tries) {
        return Ok(Aftermath::Ask(agent));
    }
    let handler = handler(&outbox.claimed, call);
    if let Some(handler) = handler.as_ref().filter(|handler| handler.strategy != Strategy::Escalate) {
        return Ok(handled(handler, outcome));
    }
    let delegate = outbox.claimed.delegate(&call.asked.name);
    let agent = delegate.map(|delegate| Arc::clone(&delegate.agent));
    let escalates = handler.is_some()
        || delegate.is_some_and(|delegate| delegate.terms.on_failure == OnFailure::Escalate);
    match agent.filter(|_| escalates) {
        Some(agent) if escalated(past, outbox, call, tries, &outcome)? => Ok(Aftermath::Ask(agent)),
        _ => Ok(Aftermath::Outcome(outcome, None)),
    }
}

/// Returns the agent that is asked next without asking a reviewer; `None` when the failure is final.
pub fn next(claimed: &Claimed, call: &Call, tries: &[Delegated]) -> Option<Arc<AgentDefinition>> {
    let delegate = claimed.delegate(&call.asked.name)?;
    by_terms(delegate, tries).or_else(|| by_handler(claimed, call, delegate, tries))
}

fn by_terms(delegate: &KnownDelegate, tries: &[Delegated]) -> Option<Arc<AgentDefinition>> {
    match &delegate.terms.on_failure {
        OnFailure::Retry if tries.len() <= RETRIES => Some(Arc::clone(&delegate.agent)),
        OnFailure::Fallback { .. } => {
            let untried = |agent: &&Arc<AgentDefinition>| tries.iter().all(|done| done.agent != agent.name);
            delegate.fallback.iter().find(untried).cloned()
        }
        _ => None,
    }
}

fn by_handler(
    claimed: &Claimed,
    call: &Call,
    delegate: &KnownDelegate,
    tries: &[Delegated],
) -> Option<Arc<AgentDefinition>> {
    let handler = handler(claimed, call)?;
    let usual = if handler.strategy == Strategy::Retry { RETRIES } else { 0 };
    let retries = handler.max_retries.map_or(usual, |said| usize::try_from(said).unwrap_or(usize::MAX));
    if tries.iter().filter(|done| done.agent == delegate.agent.name).count() <= retries {
        return Some(Arc::clone(&delegate.agent));
    }
    let instead = handler.fallback_capability.filter(|_| replaces(handler.strategy))?;
    let other = &claimed.delegate(&instead)?.agent;
    tries.iter().all(|done| done.agent != other.name).then(|| Arc::clone(other))
}

fn replaces(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::Retry | Strategy::Fallback)
}

/// Returns the handler for a failed delegate: the capability's own, else the agent's.
fn handler(claimed: &Claimed, call: &Call) -> Option<ErrorHandler> {
    let code = ErrorClass::DelegationFailed;
    let own = claimed.agent.capability(&call.asked.name).and_then(|own| own.errors.handler.clone());
    own.filter(|handler| handler.is_about(code)).or_else(|| claimed.agent.errors.handler(code).cloned())
}

/// Returns what a handler makes of the failure once its retries are used up.
fn handled(handler: &ErrorHandler, outcome: ToolOutcome) -> Aftermath {
    let ToolOutcome::Error { code, message, .. } = &outcome else { return Aftermath::Outcome(outcome, None) };
    let by = |strategy| Some(Handled { strategy, code: code.clone(), message: message.clone() });
    match (&handler.fallback_value, handler.strategy) {
        (Some(value), strategy) if replaces(strategy) => {
            let handled = by(Strategy::Fallback);
            Aftermath::Outcome(ToolOutcome::Success { output: value.clone() }, handled)
        }
        (None, strategy) if replaces(strategy) => Aftermath::Outcome(outcome, None),
        (_, strategy) => {
            let handled = by(strategy);
            Aftermath::Outcome(outcome, handled)
        }
    }
}

/// Returns true if a reviewer approved one more try that was not made yet. A call asks one question: after an
/// approved try failed, and where no reviewer is configured, the model receives the failure.
fn escalated(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    tries: &[Delegated],
    outcome: &ToolOutcome,
) -> Result<bool, Stop> {
    let Some(error) = outcome.as_error() else { return Ok(false) };
    let id = &call.asked.call_id;
    let about = |review: &&ReviewAnswer| review.call_id == *id && review.kind == ReviewKind::Escalation;
    let newest = past.reviews.iter().rev().find(about).cloned();
    match newest.as_ref().map(|review| review.state) {
        Some(ReviewState::Approved) => {
            let asked_after =
                (1..=tries.len()).find(|count| next(&outbox.claimed, call, &tries[..*count]).is_none());
            return Ok(asked_after == Some(tries.len()));
        }
        Some(state @ (ReviewState::Rejected | ReviewState::Expired)) => {
            let target = newest.and_then(|review| review.decided_by);
            let error = error.for_good().with("call_id", id.as_str());
            return Err(error.escalated(escalation::decided(target, state)).into());
        }
        Some(ReviewState::Open) | None => {}
    }
    let data = error.event_data();
    outbox.event(&EventBody::ErrorEscalated(data.clone()));
    let Some(contact) = outbox.claimed.agent.errors.contact(ErrorClass::DelegationFailed) else {
        return Ok(false);
    };
    let question = json!({"name": call.asked.name, "inputs": call.asked.arguments, "call_id": id,
        "what_happened": outcome.for_model(), "error": data, "approve_means": "ask the agent once more",
        "reject_means": "end the job with the error"});
    let topic = Topic::error(error.kind, id.clone());
    Err(escalation::ask(past, outbox, topic, question, &contact))
}

/// Returns the outcome of a call whose delegate failed.
pub fn failure(done: &Delegated) -> ToolOutcome {
    let why = match (done.state, &done.error) {
        (DelegationState::Timeout, _) => "it took longer than it may".to_owned(),
        (_, Some(error)) => error.to_string(),
        _ => "it was cancelled".to_owned(),
    };
    let text = format!("agent `{}` ended with status {}: {why}", done.agent, done.state.as_str());
    ToolOutcome::failed(FailureKind::Delegation, text)
}
