//! Calls that another agent answers (OSSA §5): the parent parks, and resumes when its delegates have ended.
//!
//! The store begins and ends a child's engagement and wakes the parent. This module decides which agent
//! receives which request, and what happens to the outcome.

use super::delegate_failure::{self, Aftermath};
use super::tool_outcome::{self, Over, deliver};
use super::{admission, context, stub};
use crate::policy::{self, Act, Ruling};
use crate::state::journal::{self, Call, CallResult};
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory, trace};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{ToolCallState, ToolOutcome};
use turnstone_domain::{AgentDefinition, NewChild, RawJson, Wait};
use turnstone_store::Delegated;

/// The next step of a call.
enum Next {
    /// The model receives an outcome that the journal holds, or a refusal.
    Deliver(Over),
    /// Wait: an agent works for it.
    Wait,
    /// Ask this agent.
    Ask(Arc<AgentDefinition>),
    /// Record this result.
    Record(CallResult),
}

/// Returns true if a call is answered by an agent.
pub fn is_one(claimed: &Claimed, past: &TurnHistory, requested: &RequestedCall) -> bool {
    claimed.delegate(&requested.name).is_some()
        || past.delegations.iter().any(|done| done.call_id == requested.call_id)
}

/// Runs a call, one of those that the model requested.
///
/// # Errors
/// [`Stop::Park`] while another agent or a reviewer works for it.
pub async fn run(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    mut call: Call,
    requested: &[RequestedCall],
) -> Result<(), Stop> {
    match next(past, bodies, outbox, &mut call).await? {
        Next::Deliver(over) => deliver(past, bodies, outbox, &call, over).await,
        Next::Wait => Err(Wait::Children(Vec::new()).into()),
        Next::Ask(agent) => {
            context::look(&outbox.claimed, past, &requested[call.position..]).await?;
            let mut children = vec![begin(past, outbox, &mut call, &agent)];
            if mode(&outbox.claimed, &call) == DelegationMode::Parallel {
                children.extend(others(past, bodies, outbox, call.position, requested)?);
            }
            Err(Wait::Children(children).into())
        }
        Next::Record(mut result) => {
            let capability = capability(&outbox.claimed, &call);
            result.outcome = outbox.screen_outcome(&call.asked.name, result.outcome);
            let over = Over::made(past, outbox, &call, &capability, result).await?;
            deliver(past, bodies, outbox, &call, over).await?;
            outbox.barrier().await
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
    mut call: Call,
) -> Result<String, Stop> {
    let capability = capability(&outbox.claimed, &call);
    if call.journalled == Some(ToolCallState::Sent)
        && let Some(last) = tries(past, &call).pop()
    {
        let Some(outcome) = ended(&last) else { return Err(Wait::Children(Vec::new()).into()) };
        let result = CallResult { outcome, handled: None, duration_ms: duration_ms(&last) };
        return tool_outcome::known_again(past, outbox, &call, &capability, result).await;
    }
    let agent = match free(&outbox.claimed, bodies, &call, true) {
        Ok(agent) => agent,
        Err(refusal) => return Ok(tool_outcome::refused_again(outbox, &call, refusal)),
    };
    if let Ruling::Deny(refusal) = unrestricted(past, outbox, &call, &capability).await? {
        return Ok(tool_outcome::refused_again(outbox, &call, refusal));
    }
    context::look(&outbox.claimed, past, std::slice::from_ref(&call.asked)).await?;
    let child = NewChild { mode: DelegationMode::Supervisor, ..begin(past, outbox, &mut call, &agent) };
    Err(Wait::Children(vec![child]).into())
}

/// Checks the restrictions of a call. No agent may be asked twice without a decision.
async fn unrestricted(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    capability: &Capability,
) -> Result<Ruling, Stop> {
    policy::may(past, outbox, Act::Call { call, capability, idempotent: false }).await
}

/// Returns the answer of the agent that took over control in this turn, if there is one.
pub fn handed_over(claimed: &Claimed, past: &TurnHistory) -> Option<Value> {
    let answer = past.conversation.answer()?;
    if let Some((_, recorded)) = stub::handover(claimed, past, &answer.tool_calls) {
        return Some(recorded);
    }
    Some(result(answer.tool_calls.iter().find_map(|requested| handover(past, requested))?))
}

/// Returns the agent that took over control in this turn, if it is registered here.
pub fn took_over(claimed: &Claimed, past: &TurnHistory) -> Option<Arc<AgentDefinition>> {
    let requested = &past.conversation.answer()?.tool_calls;
    let known = claimed.delegates.as_ref()?;
    let name = match stub::handover(claimed, past, requested) {
        Some((call, _)) => {
            let requested = requested.iter().find(|requested| requested.call_id == call)?;
            &known.get(&requested.name)?.agent.name
        }
        None => &requested.iter().find_map(|requested| handover(past, requested))?.agent,
    };
    let mut agents =
        known.values().flat_map(|delegate| std::iter::once(&delegate.agent).chain(&delegate.fallback));
    agents.find(|agent| agent.name == *name).map(Arc::clone)
}

fn handover<'t>(past: &'t TurnHistory, requested: &RequestedCall) -> Option<&'t Delegated> {
    let over = |done: &&Delegated| {
        done.call_id == requested.call_id
            && done.mode == DelegationMode::Handoff
            && done.state == DelegationState::Success
    };
    past.delegations.iter().rev().find(over)
}

/// Returns the rules for a call of an agent.
pub fn capability(claimed: &Claimed, call: &Call) -> Capability {
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

async fn next(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    call: &mut Call,
) -> Result<Next, Stop> {
    let row = past.row(&call.asked.call_id);
    if let Some(row) = row.filter(|row| row.outcome.is_some()) {
        return Ok(Next::Deliver(Over::recalled(row.clone())));
    }
    // A repetition of this call was requested and has not happened yet.
    let again = row.is_some_and(|row| row.again && row.state == ToolCallState::Planned);
    let tries = tries(past, call);
    let is_first = match tries.last() {
        None => true,
        Some(last) if again && last.state != DelegationState::Open => false,
        Some(last) => return after(past, outbox, call, &tries, last),
    };
    if is_first {
        admission::watch_repetition(&outbox.claimed, past, call)?;
    }
    let refusal = match askable(past, bodies, outbox, call) {
        Ok(agent) if !is_first => return Ok(Next::Ask(agent)),
        Ok(agent) => {
            let capability = capability(&outbox.claimed, call);
            match unrestricted(past, outbox, call, &capability).await? {
                Ruling::Deny(refusal) => refusal,
                Ruling::Allow | Ruling::Review => return Ok(Next::Ask(agent)),
            }
        }
        Err(refusal) => refusal,
    };
    Ok(Next::Deliver(Over::refused(outbox, call, refusal, false)))
}

/// Returns the agent to ask, or the refusal.
fn askable(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &Outbox,
    call: &Call,
) -> Result<Arc<AgentDefinition>, ToolOutcome> {
    within_turn(past, &outbox.claimed, call)?;
    if handed_over(&outbox.claimed, past).is_some() {
        let text = "this call was not made: control was handed over to another agent";
        return Err(ToolOutcome::refused(FailureKind::Tool, text));
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
    admission::not_forbidden(claimed, name)?;
    let offered = bodies.resolved().is_ok_and(|resolved| resolved.tools.contains(name));
    let Some(delegate) = claimed.delegate(name).filter(|_| offered && may_call) else {
        let text = format!("this agent has no tool `{name}` in this turn");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound, text));
    };
    admission::fits(claimed, &delegate.offer.input_schema, call)?;
    match claimed.too_deep(name) {
        Some(why) => Err(ToolOutcome::refused(FailureKind::DelegationDepth, why)),
        None => room(claimed, name).map(|()| Arc::clone(&delegate.agent)),
    }
}

/// Checks that the tree has room for one more job.
fn room(claimed: &Claimed, name: &str) -> Result<(), ToolOutcome> {
    let full = claimed.too_many_jobs(&format!("`{name}` was not asked"), 1);
    full.map_or(Ok(()), |why| Err(ToolOutcome::refused(FailureKind::TreeJobs, why)))
}

/// Checks the number of the call among the calls of agents in its answer.
fn within_turn(past: &TurnHistory, claimed: &Claimed, call: &Call) -> Result<(), ToolOutcome> {
    let requested = past.conversation.answer().map(|answer| answer.tool_calls.as_slice()).unwrap_or_default();
    let before = requested.iter().take(call.position);
    let before = before.filter(|requested| claimed.delegate(&requested.name).is_some()).count();
    let most = claimed.fan_out.max_children_per_turn;
    if u32::try_from(before).is_ok_and(|before| before < most) {
        return Ok(());
    }
    let text = format!(
        "`{}` was not asked: a turn may call at most {most} agents (max_children_per_turn of [agents]); ask for fewer",
        call.asked.name
    );
    Err(ToolOutcome::refused(FailureKind::Children, text))
}

/// Returns the next step of a call after a delegation.
fn after(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    tries: &[Delegated],
    last: &Delegated,
) -> Result<Next, Stop> {
    let duration_ms = duration_ms(last);
    let (outcome, handled) = match ended(last) {
        None => return Ok(Next::Wait),
        Some(outcome @ ToolOutcome::Success { .. }) => (outcome, None),
        Some(failure) => match delegate_failure::aftermath(past, outbox, call, tries, failure)? {
            Aftermath::Ask(agent) => match room(&outbox.claimed, &call.asked.name) {
                Ok(()) => return Ok(Next::Ask(agent)),
                Err(refusal) => (refusal, None),
            },
            Aftermath::Outcome(outcome, handled) => (outcome, handled),
        },
    };
    Ok(Next::Record(CallResult { outcome, handled, duration_ms }))
}

/// Returns the outcome of a delegation; `None` while it is open.
fn ended(done: &Delegated) -> Option<ToolOutcome> {
    match done.state {
        DelegationState::Open => None,
        DelegationState::Success => Some(ToolOutcome::Success { output: outputs(done) }),
        DelegationState::Error | DelegationState::Timeout => Some(delegate_failure::failure(done)),
    }
}

fn duration_ms(done: &Delegated) -> i64 {
    done.ended_at.map_or(0, |at| at.since(done.started_at).max(0))
}

fn result(done: &Delegated) -> Value {
    done.result.as_ref().and_then(|result| result.parse().ok()).unwrap_or_default()
}

/// Returns the outputs of an agent that answered: its answer as `text`, and the fields that it exposes
/// (agents brief §1.5).
fn outputs(done: &Delegated) -> Value {
    match result(done) {
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
    for (at, requested) in requested.iter().enumerate().skip(position + 1) {
        let mut call = past.call(at, requested.clone());
        let tries = tries(past, &call);
        let free = outbox.claimed.delegate(&call.asked.name).is_some()
            && mode(&outbox.claimed, &call) == DelegationMode::Parallel;
        let restricted = &capability(&outbox.claimed, &call).input_restriction;
        let unheard = restricted.assertion.is_none() && restricted.require_review.is_none();
        let agent = match tries.last() {
            _ if !free || past.conversation.has_outcome(&call.asked.call_id) => None,
            None if unheard && call.journalled.is_none() => askable(past, bodies, outbox, &call).ok(),
            Some(last) if matches!(last.state, DelegationState::Error | DelegationState::Timeout) => {
                let next = delegate_failure::next(&outbox.claimed, &call, &tries);
                next.filter(|_| room(&outbox.claimed, &call.asked.name).is_ok())
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
    outbox.claimed.tree_jobs += 1;
    let mode = mode(&outbox.claimed, call);
    let span = trace::handoff(&agent.name, mode.as_str());
    let terms = outbox.claimed.delegate(&call.asked.name).map(|delegate| &delegate.terms);
    let meta = trace::child_meta(outbox, terms, &agent.name, &span);
    let agent = match mode {
        DelegationMode::Handoff => agent.clone().taking_over_from(&outbox.claimed.agent),
        _ => agent.clone().working_for(&outbox.claimed.agent),
    };
    let agent = agent.restricted_by(&capability(&outbox.claimed, call).output_restriction);
    let (job, engagement) = past.child_of(outbox, (&call.asked.call_id, call.position), outbox.position.turn);
    NewChild {
        job,
        engagement,
        agent: Box::new(agent),
        call_id: call.asked.call_id.clone(),
        turn: outbox.position.turn,
        mode,
        args: RawJson::of(&json!([context::input(&outbox.claimed, past, call)])),
        meta,
        timeout_ms: outbox.claimed.delegate(&call.asked.name).and_then(|delegate| delegate.terms.timeout_ms),
        jobs: 1,
        max_jobs_per_tree: outbox.claimed.fan_out.max_jobs_per_tree,
        review: None,
    }
}
