//! Decides what follows a complete turn: another turn, the result, or a failure.

use super::exec;
use crate::model::FinishReason;
use crate::policy::{escalation, exposes};
use crate::state::bodies::InferBody;
use crate::state::stop::{budget_exceeded, too_little};
use crate::state::{Outbox, Stop, TurnHistory};
use serde_json::Value;
use turnstone_domain::JobError;
use turnstone_domain::agent::{OutputFormat, ToolChoice};
use turnstone_domain::embedded;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, RejectedOutput};
use turnstone_domain::turn_write::Position;

/// The complaint about an answer without text and calls.
const EMPTY: &str = "the model's answer is empty";
/// The most requests for an answer in the demanded form.
const MAX_REASKS: u32 = 1;

/// The step after a complete turn.
pub enum Verdict {
    /// Another turn.
    Continue(Position),
    /// Another turn, after the model has received the error in its answer.
    Reask(Position, String),
    /// The job's result.
    Complete(Value),
    /// The result of the agent that took over control, as that agent returned it.
    HandedOver(Value),
}

/// Decides what follows. It is a pure function of the turn's checkpoints, so that it can be repeated after a
/// crash.
///
/// # Errors
/// [`Stop::Fail`] when the engagement has used up its turns, or the model does not answer in the demanded
/// form.
pub fn verdict(past: &TurnHistory, outbox: &Outbox, infer: &InferBody) -> Result<Verdict, Stop> {
    let asked_for_tools = past.conversation.answer().is_some_and(|answer| !answer.tool_calls.is_empty());
    let next =
        |granted, tool_turns, reasks| Position { tool_turns, reasks, granted, ..outbox.position.following() };
    if let Some(answer) = exec::handed_over(&outbox.claimed, past) {
        return Ok(Verdict::HandedOver(answer));
    }
    if asked_for_tools && !outbox.claimed.agent.chain.continue_on_tool_use {
        // The document makes each turn with tool calls the last one (OSSA §4).
        return Ok(Verdict::Complete(text_of(past).into()));
    }
    if asked_for_tools {
        let granted = enough_turns(past, outbox)?;
        let tool_turns = enough_tool_turns(past, outbox)?;
        return Ok(Verdict::Continue(next(granted, tool_turns, outbox.position.reasks)));
    }
    if infer.finish_reason == FinishReason::Length && infer.capped {
        // The rest of the budget was too little for the answer: a cut answer is no result.
        let short =
            || budget_exceeded(outbox.budget.left().unwrap_or(0), outbox.claimed.deps.options.max_tokens);
        let error = infer.shortage.as_ref().map_or_else(short, too_little);
        return Err(error.into());
    }
    if let Some(error) = infer.unusable() {
        return Err(error.into());
    }
    match answer(past, outbox) {
        Ok(result) => Ok(Verdict::Complete(exposes::beside(&outbox.claimed, past, result))),
        Err(why) if outbox.position.reasks < MAX_REASKS => {
            let granted = enough_turns(past, outbox)?;
            Ok(Verdict::Reask(next(granted, outbox.position.tool_turns, outbox.position.reasks + 1), why))
        }
        Err(why) => Err(hopeless(outbox, &why).into()),
    }
}

/// The turn of the next node of a flow.
///
/// # Errors
/// [`Stop::Fail`] when as many nodes as a flow may run have run.
pub fn next_node(past: &TurnHistory, outbox: &Outbox) -> Result<Position, Stop> {
    Ok(Position { granted: enough_turns(past, outbox)?, ..outbox.position.following() })
}

/// Returns the number of granted turns. Exactly `max_turns` turns may run (OSSA §6): one more fails without a
/// model call, unless the contact of an escalation grants as many again.
fn enough_turns(past: &TurnHistory, outbox: &Outbox) -> Result<i64, Stop> {
    let (block, granted) = (i64::from(outbox.claimed.agent.limits.max_turns), outbox.position.granted);
    let limit = block + granted;
    if outbox.position.turn < limit {
        return Ok(granted);
    }
    if escalation::is_granted(past, FailureKind::MaxTurns) {
        return Ok(granted + block);
    }
    Err(too_many_turns(limit).into())
}

fn too_many_turns(limit: i64) -> JobError {
    let message = format!("the agent wants another turn after {limit} turns, which is its max_turns");
    JobError::new(FailureKind::MaxTurns, message).with("max_turns", limit)
}

/// Checks that the current turn may begin. It may not when an earlier attempt failed with the last permitted
/// turn (RS-41).
///
/// # Errors
/// [`Stop::Fail`] when it may not, and no approval permits it.
pub fn may_begin(past: &TurnHistory, outbox: &mut Outbox) -> Result<(), Stop> {
    let block = i64::from(outbox.claimed.agent.limits.max_turns);
    let limit = block + outbox.position.granted;
    if outbox.position.turn <= limit {
        return Ok(());
    }
    if escalation::is_granted(past, FailureKind::MaxTurns) {
        outbox.position.granted += block;
        return Ok(());
    }
    Err(too_many_turns(limit).into())
}

/// Returns the number of consecutive turns with tool calls. After `max_tool_turns` of them, the next turn
/// offers no tools and an answer is due (OSSA §4). A model that calls tools even then has used up its turns.
fn enough_tool_turns(past: &TurnHistory, outbox: &Outbox) -> Result<u32, Stop> {
    if outbox.claimed.may_call(outbox.position.tool_turns) {
        return Ok(outbox.position.tool_turns + 1);
    }
    if escalation::is_granted(past, FailureKind::MaxTurns) {
        return Ok(0);
    }
    let most = outbox.position.tool_turns;
    let message = format!(
        "the model asks for tools after {most} turns in a row that did, which is max_tool_turns, although none was on offer"
    );
    Err(JobError::new(FailureKind::MaxTurns, message).with("max_tool_turns", most).into())
}

/// Returns true if the model must still call a tool before its answer (agent extension §2.2).
fn lacks_call(outbox: &Outbox) -> bool {
    outbox.claimed.agent.tool_choice == ToolChoice::Required && outbox.position.tool_turns == 0
}

/// Returns the error of an answer that was rejected twice.
fn hopeless(outbox: &Outbox, why: &str) -> JobError {
    if lacks_call(outbox) {
        let message = format!("the model answers without calling a tool, also when asked again: {why}");
        return JobError::new(FailureKind::Model, message);
    }
    if why == EMPTY {
        return JobError::new(FailureKind::EmptyAnswer, format!("{EMPTY}, also when asked again"));
    }
    let message = format!("the model's answer has not the demanded form, also when asked again: {why}");
    JobError::new(FailureKind::OutputSchema, message)
}

fn answer(past: &TurnHistory, outbox: &Outbox) -> Result<Value, String> {
    if lacks_call(outbox) {
        return Err("the job demands a tool call before the answer, and none was made".to_owned());
    }
    let text = text_of(past);
    if text.trim().is_empty() {
        return Err(EMPTY.to_owned());
    }
    if outbox.claimed.agent.output.format != OutputFormat::Json
        && outbox.claimed.agent.output.schema.is_none()
    {
        return Ok(text.into());
    }
    let schema = outbox.claimed.agent.output.schema.as_ref();
    embedded::find(text, &|value| {
        schema.map_or(Ok(()), |schema| outbox.claimed.deps.check(schema, value).map(drop))
    })
}

fn text_of(past: &TurnHistory) -> &str {
    past.conversation.answer().map(|answer| answer.content.as_str()).unwrap_or_default()
}

/// Reports the error in the answer to the model.
pub fn reask(past: &mut TurnHistory, outbox: &mut Outbox, why: &str) {
    use turnstone_domain::message::{Message, Role};
    outbox.event(&EventBody::OutputRejected(RejectedOutput { message: Some(why.to_owned()) }));
    let text = format!(
        "Your answer was not accepted: {why}. Give the whole answer again, in the demanded form only."
    );
    past.say(outbox, Message::text(Role::System, text));
}
