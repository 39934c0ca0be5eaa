//! One tool call, from the model's wish to the outcome that the model is told (agents brief §1.4).

use super::restriction::{self, Checked};
use crate::phases::{infer, resol};
use crate::tool::{Invocation, Tool, ToolError};
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument;
use turnstone_domain::agent::Capability;
use turnstone_domain::engagement::outputs_of;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall};
use turnstone_domain::tool_call::{ToolCall, ToolCallMove, ToolCallState, ToolOutcome};
use turnstone_domain::{EventName, JobError};
use turnstone_telemetry::names;

/// Outputs of up to this many bytes stand in their event; longer ones are read from the journal.
const SHOWN_OUTPUT: usize = 4096;

/// A call on its way.
pub struct Call {
    /// What the model asked for.
    pub asked: RequestedCall,
    /// Its position among the calls of the turn.
    pub position: usize,
    /// Where its journal row stood when the job was claimed; `None` when there is no row yet.
    pub journalled: Option<ToolCallState>,
}

/// Runs one call. `allowed` is false for calls beyond the limit of one answer.
pub async fn run(turn: &mut Turn, position: usize, asked: RequestedCall, allowed: bool) -> Result<(), Stop> {
    let row = turn.recalled_calls.iter().find(|row| row.call_id == asked.call_id).cloned();
    let call = Call { asked, position, journalled: row.as_ref().map(|row| row.state) };
    let row_ms = row.as_ref().and_then(|row| row.duration_ms).unwrap_or(0);
    if let Some(outcome) = row.as_ref().and_then(|row| row.outcome.clone()) {
        // Settled before the worker died or parked, but the model was not told yet: only the output review is left.
        return release(turn, &call, outcome, row_ms);
    }
    watch_repetition(turn, &call)?;
    let sent = row.filter(|row| row.state == ToolCallState::Sent);
    let (tool, capability) = match (callable(turn, &call, allowed), &sent) {
        (Ok(found), _) => found,
        (Err(refusal), None) => return refuse(turn, &call, refusal),
        // The tool is gone or has changed since the request left; that it may have had its effect is still true.
        (Err(_), Some(_)) => return unknown(turn, &call),
    };
    match &sent {
        // It passed its restrictions before it left. Idempotent is what it was then and still is now.
        Some(sent) if sent.idempotent && tool.spec().idempotent => {}
        Some(sent) if restriction::may_resend(turn, &call, sent.sends)? => {}
        Some(_) => return unknown(turn, &call),
        None => {
            if let Checked::Denied(refusal) =
                restriction::before(turn, &call, &capability, tool.spec().idempotent)?
            {
                return refuse(turn, &call, refusal);
            }
        }
    }
    send(turn, &call, &tool).await?;
    let began = Instant::now();
    let span = tracing::info_span!(
        names::TOOL_CALL,
        { names::TOOL_NAME } = call.asked.name,
        { names::CALL_ID } = %call.asked.call_id,
    );
    let outcome = invoke(&call, &tool, &capability).instrument(span).await;
    let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    settle(turn, &call, outcome, duration_ms, &capability)?;
    // The outcome is durable before anything is built on it.
    turn.barrier().await
}

/// Makes a call of an earlier turn again, under the rules of its first time; returns what the model is to hear. The row of
/// the journal stands for the newest outcome.
pub async fn repeat(turn: &mut Turn, row: ToolCall, asked: RequestedCall) -> Result<String, Stop> {
    let position = usize::try_from(row.position).unwrap_or_default();
    let call = Call { asked, position, journalled: Some(row.state) };
    let (tool, capability) = match usable(turn, &call) {
        Ok(found) => found,
        Err(refusal) => return Ok(refused_again(turn, &call, &refusal)),
    };
    if row.state == ToolCallState::Sent {
        let idempotent = row.idempotent && tool.spec().idempotent;
        if !idempotent && !restriction::may_resend(turn, &call, row.sends)? {
            let text = "the outcome of this call is unknown: it may or may not have had its effect";
            return Ok(refused_again(turn, &call, &ToolOutcome::failed(FailureKind::Tool.code(), text)));
        }
    } else if let Checked::Denied(refusal) =
        restriction::before(turn, &call, &capability, tool.spec().idempotent)?
    {
        return Ok(refused_again(turn, &call, &refusal));
    }
    send(turn, &call, &tool).await?;
    let began = Instant::now();
    let outcome = invoke(&call, &tool, &capability).await;
    let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    let denied = restriction::after(turn, &call, &capability, &outcome);
    // A reviewer was asked about the first outcome; nobody has seen this one, so nobody is told.
    let reviewed = capability.output_restriction.require_review.is_some();
    let withheld = denied.is_some() || reviewed || !capability.collect_results;
    note_outcome(turn, &call, &outcome, duration_ms, withheld);
    Ok(match denied {
        Some(denial) => denial.for_model(),
        None if reviewed => "withheld, because a reviewer would have to agree".to_owned(),
        None => outcome.for_model(),
    })
}

fn refused_again(turn: &mut Turn, call: &Call, refusal: &ToolOutcome) -> String {
    note_outcome(turn, call, refusal, 0, false);
    refusal.for_model()
}

/// OAS-53: the N-th repetition of a block is refused and ends the engagement. A call that was journalled before has
/// been counted by the recall.
fn watch_repetition(turn: &mut Turn, call: &Call) -> Result<(), Stop> {
    if call.journalled.is_some() {
        return Ok(());
    }
    let Some(watch) = &mut turn.short_circuit else { return Ok(()) };
    if !watch.attempt(&call.asked.name) {
        return Ok(());
    }
    let message = format!(
        "short_circuit {}: the agent repeats the same calls, last `{}`; the engagement is ended",
        turn.agent.short_circuit.unwrap_or_default(),
        call.asked.name
    );
    Err(JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-53").into())
}

/// Finds the tool and checks the arguments, or says why the call is refused.
fn callable(turn: &mut Turn, call: &Call, allowed: bool) -> Result<(Arc<dyn Tool>, Capability), ToolOutcome> {
    let name = &call.asked.name;
    if !allowed {
        return Err(ToolOutcome::refused(
            FailureKind::Validation.code(),
            "too many tool calls in one answer; ask for fewer",
        ));
    }
    if !infer::may_call(turn) {
        let text = format!("this agent has no tool `{name}` in this turn");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound.code(), text));
    }
    usable(turn, call)
}

/// Finds the tool and checks the arguments.
fn usable(turn: &mut Turn, call: &Call) -> Result<(Arc<dyn Tool>, Capability), ToolOutcome> {
    let name = &call.asked.name;
    let offered = turn.resolved().is_ok_and(|resolved| resolved.tools.contains(name));
    let found = resol::callable(turn, name).zip(resol::offer(turn, name));
    let Some(((tool, capability), offer)) = found.filter(|_| offered) else {
        let text = format!("this agent has no tool `{name}`");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound.code(), text));
    };
    // What the agent says of the tool narrows what the registry says; it never replaces it.
    let checked = [&offer.input_schema, &tool.spec().input_schema]
        .into_iter()
        .try_for_each(|schema| turn.deps.schema(schema)?.check(&call.asked.arguments));
    if let Err(why) = checked {
        let text = format!("the arguments do not match the schema of `{name}`: {why}");
        return Err(ToolOutcome::refused(FailureKind::ToolInput.code(), text));
    }
    Ok((tool, capability))
}

/// A call that was sent before a crash, and that nobody may repeat: the model learns that its outcome is unknown.
fn unknown(turn: &mut Turn, call: &Call) -> Result<(), Stop> {
    let text = "the outcome of this call is unknown: it may or may not have had its effect; do not repeat it";
    let outcome = ToolOutcome::failed(FailureKind::Tool.code(), text);
    settle(turn, call, outcome, 0, &Capability::named(call.asked.name.clone()))
}

/// Makes the intent durable.
async fn send(turn: &mut Turn, call: &Call, tool: &Arc<dyn Tool>) -> Result<(), Stop> {
    let intent = match call.journalled {
        Some(_) => ToolCallMove::Send { call_id: call.asked.call_id.clone() },
        None => intend(turn, call, tool.spec().idempotent, true),
    };
    turn.pending().tool_calls.push(intent);
    let data = json!({"call_id": call.asked.call_id, "name": call.asked.name, "input": call.asked.arguments});
    turn.event(EventName::ToolCalled, data);
    turn.barrier().await
}

/// A new journal row.
pub fn intend(turn: &Turn, call: &Call, idempotent: bool, sent: bool) -> ToolCallMove {
    ToolCallMove::Intend {
        call_id: call.asked.call_id.clone(),
        turn: turn.position.turn,
        position: i64::try_from(call.position).unwrap_or(i64::MAX),
        name: call.asked.name.clone(),
        input: call.asked.arguments.clone(),
        idempotent,
        sent,
    }
}

async fn invoke(call: &Call, tool: &Arc<dyn Tool>, capability: &Capability) -> ToolOutcome {
    let timeout =
        capability.timeout_ms.map_or(tool.timeout(), |ms| tool.timeout().min(Duration::from_millis(ms)));
    let invocation = Invocation { call_id: &call.asked.call_id, input: &call.asked.arguments, timeout };
    match tool.call(invocation).await {
        Ok(output) => ToolOutcome::Success { output },
        Err(ToolError::Failed(text)) => ToolOutcome::failed(FailureKind::Tool.code(), text),
        Err(ToolError::Timeout(text)) => ToolOutcome::failed(FailureKind::ToolTimeout.code(), text),
        Err(ToolError::Refused(text)) => ToolOutcome::refused(FailureKind::Tool.code(), text),
    }
}

/// A call that is refused before it is made: journalled, and the model is told.
fn refuse(turn: &mut Turn, call: &Call, outcome: ToolOutcome) -> Result<(), Stop> {
    if call.journalled.is_none() {
        let intent = intend(turn, call, false, false);
        turn.pending().tool_calls.push(intent);
    }
    note_outcome(turn, call, &outcome, 0, false);
    turn.say(Message::tool(call.asked.call_id.clone(), outcome.for_model()));
    Ok(())
}

/// The outcome of a call that was made: checked, journalled, and the model is told unless a reviewer has to agree.
fn settle(
    turn: &mut Turn,
    call: &Call,
    outcome: ToolOutcome,
    duration_ms: i64,
    capability: &Capability,
) -> Result<(), Stop> {
    let denied = restriction::after(turn, call, capability, &outcome);
    let reviewed = capability.output_restriction.require_review.is_some() && denied.is_none();
    let withheld = denied.is_some() || reviewed || !capability.collect_results;
    if let Some(object) = turn.object.as_mut().filter(|_| outcome.was_invoked()) {
        let outputs = if withheld { Value::Null } else { outputs_of(&outcome) };
        object.record(&call.asked.name, call.asked.arguments.clone(), outputs);
    }
    note_outcome(turn, call, &outcome, duration_ms, withheld);
    match denied {
        Some(denial) => turn.say(Message::tool(call.asked.call_id.clone(), denial.for_model())),
        None if reviewed => restriction::review_output(turn, call, capability, &outcome)?,
        None => turn.say(Message::tool(call.asked.call_id.clone(), outcome.for_model())),
    }
    Ok(())
}

/// Tells the model an outcome that was settled earlier, once its output review allows it.
fn release(turn: &mut Turn, call: &Call, outcome: ToolOutcome, duration_ms: i64) -> Result<(), Stop> {
    if let Some(capability) = turn.agent.capability(&call.asked.name).cloned()
        && capability.output_restriction.require_review.is_some()
        && outcome.was_invoked()
    {
        restriction::review_output(turn, call, &capability, &outcome)?;
        if capability.collect_results {
            let step = settled(call, &outcome, duration_ms, false);
            turn.pending().tool_calls.push(step);
            if let Some(object) = &mut turn.object {
                object.reveal(&call.asked.name, &outputs_of(&outcome));
            }
        }
    }
    turn.say(Message::tool(call.asked.call_id.clone(), outcome.for_model()));
    Ok(())
}

fn settled(call: &Call, outcome: &ToolOutcome, duration_ms: i64, withheld: bool) -> ToolCallMove {
    let call_id = call.asked.call_id.clone();
    ToolCallMove::Settle { call_id, outcome: outcome.clone(), duration_ms, withheld }
}

fn note_outcome(turn: &mut Turn, call: &Call, outcome: &ToolOutcome, duration_ms: i64, withheld: bool) {
    let step = settled(call, outcome, duration_ms, withheld);
    turn.pending().tool_calls.push(step);
    let (call_id, name) = (&call.asked.call_id, &call.asked.name);
    match outcome {
        ToolOutcome::Success { output } => {
            let mut data = json!({"call_id": call_id, "name": name, "duration_ms": duration_ms});
            let bytes = output.to_string().len();
            if !withheld && bytes <= SHOWN_OUTPUT {
                data["output"] = output.clone();
            } else if !withheld {
                data["output_bytes"] = bytes.into();
            }
            turn.event(EventName::ToolCompleted, data);
        }
        ToolOutcome::Error { .. } => {
            let mut data = outcome.told().unwrap_or_default();
            data["call_id"] = json!(call_id);
            data["name"] = json!(name);
            turn.event(EventName::ToolFailed, data);
        }
    }
}
