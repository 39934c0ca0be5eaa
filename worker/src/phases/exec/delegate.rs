//! Calls that another agent answers (OSSA §5): the parent parks, and resumes when its delegates have ended.
//!
//! The store begins and ends a child's engagement and wakes the parent. This module decides which agent
//! receives which request, and what happens to the outcome.

use super::admission::{self, MAX_CALLS};
use super::context;
use super::delegate_failure::{self, Aftermath};
use super::tool_outcome::{self, Ending, Over, deliver};
use crate::policy::restriction::{self, Checked};
use crate::state::journal::{self, Call};
use crate::state::{Bodies, Claimed, Outbox, Stop, Turn, TurnHistory, trace};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{Handled, ToolCall, ToolCallState, ToolOutcome};
use turnstone_domain::{AgentDefinition, EngagementId, JobId, NewChild, RawJson, Wait};
use turnstone_store::Delegated;

/// The next step of a call.
enum Next {
    /// None: the model has received the outcome.
    Returned,
    /// Wait: an agent works for it.
    Wait,
    /// Ask this agent.
    Ask(Arc<AgentDefinition>),
    /// Record this outcome, the effect of a handler, and the duration in milliseconds.
    Outcome(ToolOutcome, Option<Handled>, i64),
}

/// Returns true if a call is answered by an agent.
pub fn is_one(claimed: &Claimed, past: &TurnHistory, requested: &RequestedCall) -> bool {
    claimed.delegate(&requested.name).is_some()
        || past.delegations.iter().any(|done| done.call_id == requested.call_id)
}

/// Runs the call at `position` among those that the model asked for.
///
/// # Errors
/// [`Stop::Park`] while another agent or a reviewer works for it.
pub async fn run(turn: &mut Turn, position: usize, requested: &[RequestedCall]) -> Result<(), Stop> {
    let mut call = call_at(&turn.past, position, requested);
    match next(turn, &mut call)? {
        Next::Returned => Ok(()),
        Next::Wait => Err(Stop::Park(Box::new(Wait::Children(Vec::new())))),
        Next::Ask(agent) => {
            context::look(&turn.outbox.claimed, &mut turn.past, &requested[position..]).await?;
            let mut children = vec![begin(&turn.past, &mut turn.outbox, &mut call, &agent)];
            if mode(&turn.outbox.claimed, &call) == DelegationMode::Parallel {
                children.extend(others(
                    &mut turn.past,
                    &mut turn.bodies,
                    &mut turn.outbox,
                    position,
                    requested,
                )?);
            }
            Err(Stop::Park(Box::new(Wait::Children(children))))
        }
        Next::Outcome(outcome, handled, duration_ms) => {
            let capability = capability(&turn.outbox.claimed, &call);
            let outcome = turn.outbox.screen_outcome(&call.asked.name, outcome);
            let over =
                Over::made(&turn.past, &mut turn.outbox, &call, &capability, outcome, handled, duration_ms);
            deliver(turn, &call, over)?;
            turn.outbox.barrier().await
        }
    }
}

/// Asks an agent again for a call of an earlier turn, or takes its answer since; returns the text for the
/// model. The answer is an outcome, so control is not handed over.
///
/// # Errors
/// As [`run`].
pub async fn repeat(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    row: &ToolCall,
    requested: RequestedCall,
) -> Result<String, Stop> {
    let position = usize::try_from(row.position).unwrap_or_default();
    let mut call = Call { asked: requested, position, journalled: Some(row.state), stub_of: None };
    let capability = capability(&outbox.claimed, &call);
    let last = tries(past, &call).pop().filter(|_| row.state == ToolCallState::Sent);
    if let Some(last) = last {
        let duration_ms = last.ended_at.map_or(0, |at| at.since(last.started_at).max(0));
        let outcome = match last.state {
            DelegationState::Open => return Err(Stop::Park(Box::new(Wait::Children(Vec::new())))),
            DelegationState::Success => ToolOutcome::Success { output: outputs(&last) },
            DelegationState::Error | DelegationState::Timeout => delegate_failure::failure(&last),
        };
        return Ok(tool_outcome::known_again(past, outbox, &call, &capability, outcome, duration_ms));
    }
    let agent = match free(&outbox.claimed, bodies, &call, true) {
        Ok(agent) => agent,
        Err(refusal) => return Ok(tool_outcome::refused_again(outbox, &call, &refusal)),
    };
    if let Checked::Denied(refusal) = restriction::before(past, outbox, &call, &capability, false)? {
        return Ok(tool_outcome::refused_again(outbox, &call, &refusal));
    }
    context::look(&outbox.claimed, past, std::slice::from_ref(&call.asked)).await?;
    let child = NewChild { mode: DelegationMode::Supervisor, ..begin(past, outbox, &mut call, &agent) };
    Err(Stop::Park(Box::new(Wait::Children(vec![child]))))
}

/// Returns the answer of the agent that took over control in this turn, if there is one.
pub fn handed_over(claimed: &Claimed, past: &TurnHistory) -> Option<Value> {
    let answer = past.conversation.answer()?;
    if let Some(recorded) = super::stub::handed_over(claimed, past, &answer.tool_calls) {
        return Some(recorded);
    }
    let done = answer.tool_calls.iter().find_map(|requested| handover(past, requested))?;
    Some(done.result.as_ref().and_then(|result| result.parse().ok()).unwrap_or_default())
}

/// Returns the agent that took over control in this turn, if it is registered here.
pub fn took_over(claimed: &Claimed, past: &TurnHistory) -> Option<Arc<AgentDefinition>> {
    let answer = past.conversation.answer()?;
    let known = claimed.delegates.as_ref()?;
    let requested = answer.tool_calls.iter();
    let name = match super::stub::handed_over_by(claimed, past, &answer.tool_calls) {
        Some(call) => known
            .get(&requested.clone().find(|requested| requested.call_id == call)?.name)?
            .agent
            .name
            .clone(),
        None => requested.clone().find_map(|requested| handover(past, requested))?.agent.clone(),
    };
    let mut agents =
        known.values().flat_map(|delegate| std::iter::once(&delegate.agent).chain(&delegate.fallback));
    agents.find(|agent| agent.name == name).map(Arc::clone)
}

fn handover<'t>(past: &'t TurnHistory, requested: &RequestedCall) -> Option<&'t Delegated> {
    let over = |done: &&Delegated| {
        done.call_id == requested.call_id
            && done.mode == DelegationMode::Handoff
            && done.state == DelegationState::Success
    };
    past.delegations.iter().rev().find(over)
}

fn call_at(past: &TurnHistory, position: usize, requested: &[RequestedCall]) -> Call {
    let requested = requested[position].clone();
    let row = past.recalled_calls.iter().find(|row| row.call_id == requested.call_id);
    Call { journalled: row.map(|row| row.state), asked: requested, position, stub_of: None }
}

fn capability(claimed: &Claimed, call: &Call) -> Capability {
    let own = claimed.agent.capability(&call.asked.name).cloned();
    own.unwrap_or_else(|| Capability::named(call.asked.name.clone()))
}

/// Returns the mode of a delegation. A handoff whose result must be checked becomes a supervised delegation.
fn mode(claimed: &Claimed, call: &Call) -> DelegationMode {
    let wanted = claimed.delegate(&call.asked.name).map(|delegate| delegate.terms.mode).unwrap_or_default();
    let checks = capability(claimed, call).output_restriction;
    match wanted {
        DelegationMode::Handoff if checks.assertion.is_some() || checks.require_review.is_some() => {
            DelegationMode::Supervisor
        }
        mode => mode,
    }
}

/// Returns the delegations of this call, past and open.
fn tries(past: &TurnHistory, call: &Call) -> Vec<Delegated> {
    past.delegations.iter().filter(|done| done.call_id == call.asked.call_id).cloned().collect()
}

fn next(turn: &mut Turn, call: &mut Call) -> Result<Next, Stop> {
    let row = turn.past.recalled_calls.iter().find(|row| row.call_id == call.asked.call_id).cloned();
    if let Some((outcome, row)) = row.and_then(|row| Some((row.outcome.clone()?, row))) {
        deliver(turn, call, Over::recalled(outcome, row.handled, row.duration_ms.unwrap_or(0)))?;
        return Ok(Next::Returned);
    }
    let tries = tries(&turn.past, call);
    let again = call.journalled == Some(ToolCallState::Planned) && row_again(&turn.past, call);
    match tries.last() {
        None => first(turn, call),
        Some(last) if again && last.state != DelegationState::Open => {
            match askable(&turn.past, &mut turn.bodies, &turn.outbox, call) {
                Ok(agent) => Ok(Next::Ask(agent)),
                Err(refusal) => refused(turn, call, refusal),
            }
        }
        Some(last) => after(&turn.past, &mut turn.outbox, call, &tries, last),
    }
}

/// Returns true if a repetition of this call was requested and has not happened yet.
fn row_again(past: &TurnHistory, call: &Call) -> bool {
    past.recalled_calls.iter().any(|row| row.call_id == call.asked.call_id && row.again)
}

/// Returns the next step of a call before its first delegation.
fn first(turn: &mut Turn, call: &mut Call) -> Result<Next, Stop> {
    admission::watch_repetition(&turn.outbox.claimed, &mut turn.past, call)?;
    let agent = match askable(&turn.past, &mut turn.bodies, &turn.outbox, call) {
        Ok(agent) => agent,
        Err(refusal) => return refused(turn, call, refusal),
    };
    let capability = capability(&turn.outbox.claimed, call);
    match restriction::before(&turn.past, &mut turn.outbox, call, &capability, false)? {
        Checked::Passed => Ok(Next::Ask(agent)),
        Checked::Denied(refusal) => refused(turn, call, refusal),
    }
}

fn refused(turn: &mut Turn, call: &mut Call, outcome: ToolOutcome) -> Result<Next, Stop> {
    journal::plan(&mut turn.outbox, call, false);
    let over = Over { outcome, handled: None, duration_ms: 0, ending: Ending::Refused };
    over.note(&mut turn.outbox, call, false);
    deliver(turn, call, over)?;
    Ok(Next::Returned)
}

/// Returns the agent to ask, or the refusal.
fn askable(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &Outbox,
    call: &Call,
) -> Result<Arc<AgentDefinition>, ToolOutcome> {
    if call.position >= MAX_CALLS {
        return Err(ToolOutcome::refused(
            FailureKind::Validation.code(),
            "too many tool calls in one answer; ask for fewer",
        ));
    }
    if handed_over(&outbox.claimed, past).is_some() {
        let text = "this call was not made: control was handed over to another agent";
        return Err(ToolOutcome::refused(FailureKind::Tool.code(), text));
    }
    let may_call = outbox.claimed.may_call(outbox.position.tool_turns);
    free(&outbox.claimed, bodies, call, may_call)
}

/// Returns the same for a call on which no earlier call of the turn has an effect.
fn free(
    claimed: &Claimed,
    bodies: &mut Bodies,
    call: &Call,
    may_call: bool,
) -> Result<Arc<AgentDefinition>, ToolOutcome> {
    let name = &call.asked.name;
    if let Some(refusal) = admission::forbidden(claimed, name) {
        return Err(refusal);
    }
    let offered = bodies.resolved().is_ok_and(|resolved| resolved.tools.contains(name));
    let Some(delegate) = claimed.delegate(name).filter(|_| offered && may_call) else {
        let text = format!("this agent has no tool `{name}` in this turn");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound.code(), text));
    };
    if let Err(why) = claimed.deps.check(&delegate.offer.input_schema, &call.asked.arguments) {
        let text = format!("the arguments do not match the schema of `{name}`: {why}");
        return Err(ToolOutcome::refused(FailureKind::ToolInput.code(), text));
    }
    let most = i64::from(claimed.agent.limits.max_delegation_depth);
    if claimed.depth + 1 > most {
        let text = format!(
            "`{name}` was not asked: it would be {} deep, and this agent may delegate to a depth of {most}",
            claimed.depth + 1
        );
        return Err(ToolOutcome::refused(FailureKind::DelegationDepth.code(), text));
    }
    Ok(Arc::clone(&delegate.agent))
}

/// Returns the next step of a call after a delegation.
fn after(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    tries: &[Delegated],
    last: &Delegated,
) -> Result<Next, Stop> {
    let duration_ms = last.ended_at.map_or(0, |at| at.since(last.started_at).max(0));
    match last.state {
        DelegationState::Open => return Ok(Next::Wait),
        DelegationState::Success => {
            return Ok(Next::Outcome(ToolOutcome::Success { output: outputs(last) }, None, duration_ms));
        }
        DelegationState::Error | DelegationState::Timeout => {}
    }
    Ok(match delegate_failure::aftermath(past, outbox, call, tries, last)? {
        Aftermath::Ask(agent) => Next::Ask(agent),
        Aftermath::Outcome(outcome, handled) => Next::Outcome(outcome, handled, duration_ms),
    })
}

/// Returns the outputs of an agent that answered: its answer as `text`, and the fields that it exposes
/// (agents brief §1.5).
fn outputs(done: &Delegated) -> Value {
    match done.result.as_ref().and_then(|result| result.parse().ok()).unwrap_or_default() {
        Value::String(text) => json!({"text": text}),
        Value::Object(fields) if fields.get("text").is_some_and(Value::is_string) => Value::Object(fields),
        other => json!({"text": other.to_string(), "output": other}),
    }
}

/// Begins the other parallel delegations of the turn that need no assertion or review first. With a watch
/// over repetitions it stops at the first other call, so that calls are counted in order.
fn others(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    position: usize,
    requested: &[RequestedCall],
) -> Result<Vec<NewChild>, Stop> {
    let mut children = Vec::new();
    for at in position + 1..requested.len() {
        let mut call = call_at(past, at, requested);
        let tries = tries(past, &call);
        let free = outbox.claimed.delegate(&call.asked.name).is_some()
            && mode(&outbox.claimed, &call) == DelegationMode::Parallel;
        let restricted = &capability(&outbox.claimed, &call).input_restriction;
        let unheard = restricted.assertion.is_none() && restricted.require_review.is_none();
        let agent = match tries.last() {
            _ if !free || past.conversation.has_outcome(&call.asked.call_id) => None,
            None if unheard && call.journalled.is_none() => askable(past, bodies, outbox, &call).ok(),
            Some(last) if matches!(last.state, DelegationState::Error | DelegationState::Timeout) => {
                delegate_failure::next(&outbox.claimed, &call, &tries)
            }
            _ => None,
        };
        match agent {
            Some(agent) => {
                if tries.is_empty() {
                    admission::watch_repetition(&outbox.claimed, past, &call)?;
                }
                children.push(begin(past, outbox, &mut call, &agent));
            }
            None if past.short_circuit.is_some() => break,
            None => {}
        }
    }
    Ok(children)
}

/// Begins a delegation: the intent and the child's engagement become durable together when the parent parks.
fn begin(past: &TurnHistory, outbox: &mut Outbox, call: &mut Call, agent: &AgentDefinition) -> NewChild {
    journal::record_sent(outbox, call, false, true);
    let mode = mode(&outbox.claimed, call);
    let span = trace::handoff(&agent.name, mode.as_str());
    let terms = outbox.claimed.delegate(&call.asked.name).map(|delegate| &delegate.terms);
    let meta = trace::child_meta(outbox, terms, &agent.name, &span);
    let agent = match mode {
        DelegationMode::Handoff => agent.clone().taking_over_from(&outbox.claimed.agent),
        _ => agent.clone().working_for(&outbox.claimed.agent),
    };
    NewChild {
        job: JobId(outbox.claimed.deps.ids.next()),
        engagement: EngagementId(outbox.claimed.deps.ids.next()),
        agent: Box::new(agent),
        call_id: call.asked.call_id.clone(),
        turn: outbox.position.turn,
        mode,
        args: RawJson::of(&json!([context::input(&outbox.claimed, past, call)])),
        meta,
        timeout_ms: outbox.claimed.delegate(&call.asked.name).and_then(|delegate| delegate.terms.timeout_ms),
        review: None,
    }
}
