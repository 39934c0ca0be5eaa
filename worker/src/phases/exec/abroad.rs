//! Calls that an agent on another server works for: what is noted of them beside their own rows, what that agent asks our user,
//! and how it is told that nobody waits any more.
//!
//! A note is a row of the journal with an id of its own. It is durable before anything is built on it, so whoever takes the job
//! over waits for the same work elsewhere, and gives the same answers.

use super::call::{Call, intend};
use crate::phases::resol;
use crate::tool::{AskedElsewhere, Tool};
use crate::turn::guard;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::question::{self, AskedUser};
use turnstone_domain::tool_call::{ToolCall, ToolCallMove, ToolOutcome};
use turnstone_domain::{CallId, Wait};

/// The places of notes among the calls of a turn are behind those of its calls.
const PLACES: usize = 1_000;
/// Answers of one call among the checks of a turn: behind those of the calls of the agent itself.
const CHECKS: usize = 32;

/// What is known of work elsewhere for calls of the current turn.
#[derive(Default)]
pub struct Abroad {
    under_way: Vec<Work>,
    /// Notes that this process made.
    noted: Vec<CallId>,
}

/// Work elsewhere for a call.
struct Work {
    call: CallId,
    tool: Arc<dyn Tool>,
    handle: Value,
}

/// What is known of a call from before it is made in this process.
#[derive(Default)]
pub struct Known {
    /// What it works under.
    pub handle: Option<Value>,
    /// The tokens that were booked for it.
    pub booked: i64,
}

/// What the journal knows of the work for this call.
pub fn known(turn: &mut Turn, call: &RequestedCall, tool: &Arc<dyn Tool>) -> Known {
    let mut known = Known::default();
    for note in notes(turn, &call.call_id) {
        if let Some(handle) = note.input.get("handle").filter(|_| note.name == call.name) {
            known.handle = Some(handle.clone());
        }
        known.booked = known.booked.max(note.input["tokens"].as_i64().unwrap_or(0));
    }
    if let Some(handle) = &known.handle {
        under_way(turn, &call.call_id, tool, handle);
    }
    known
}

fn notes<'t>(turn: &'t Turn, call: &CallId) -> impl Iterator<Item = &'t ToolCall> {
    let is_one = |row: &&ToolCall| ToolCall::note_number(&row.call_id, call).is_some();
    turn.recalled_calls.iter().filter(is_one).collect::<Vec<_>>().into_iter()
}

fn under_way(turn: &mut Turn, call: &CallId, tool: &Arc<dyn Tool>, handle: &Value) {
    turn.abroad.under_way.retain(|other| other.call != *call);
    let work = Work { call: call.clone(), tool: Arc::clone(tool), handle: handle.clone() };
    turn.abroad.under_way.push(work);
}

/// Notes that an agent elsewhere works for a call now. It is durable with the next barrier.
pub fn begun(turn: &mut Turn, call: &Call, tool: &Arc<dyn Tool>, handle: &Value) {
    let asked = &call.asked;
    let input = json!({"handle": handle});
    let note = note(turn, call, asked.name.clone(), input);
    let call_id = note.asked.call_id.clone();
    let intent = intend(turn, &note, true, false);
    let outcome = ToolOutcome::Success { output: Value::Null };
    let settled = ToolCallMove::Settle { call_id, outcome, handled: None, duration_ms: 0, withheld: false };
    turn.pending().tool_calls.extend([intent, settled]);
    under_way(turn, &call.asked.call_id, tool, handle);
}

/// The next note about a call.
fn note(turn: &mut Turn, call: &Call, name: String, input: Value) -> Call {
    let id = &call.asked.call_id;
    let ids = turn.recalled_calls.iter().map(|row| &row.call_id).chain(&turn.abroad.noted);
    let last = ids.filter_map(|other| ToolCall::note_number(other, id)).max();
    let number = last.map_or(0, |last| last + 1);
    let call_id = ToolCall::note_id(id, number);
    turn.abroad.noted.push(call_id.clone());
    let asked = RequestedCall { call_id, name, arguments: input };
    Call { asked, position: PLACES * (call.position + 1) + number, journalled: None, stub_of: None }
}

/// Whether the agent of this turn may ask its user at all; then what others ask is passed on. One that works behind an output
/// guardrail asks nobody (OAS-43).
pub fn may_ask(turn: &Turn) -> bool {
    !turn.agent.guardrails.for_guarded
        && question::TOOLS.iter().any(|name| resol::capability(turn, name).is_some())
}

/// What the model hears of a question that nobody is asked.
pub fn unasked(asked: &AskedElsewhere) -> ToolOutcome {
    let text = format!(
        "it asks its user, and an agent without the capability `{}`, or one that works behind an output guardrail, asks nobody: {}",
        question::TOOLS[1],
        crate::tool::outbound::excerpt(&asked.question.prompt(), 300)
    );
    ToolOutcome::failed(FailureKind::Tool.code(), text).again_is_useless()
}

/// Asks our user what an agent elsewhere asks; `tokens` were booked for it so far. The job parks, and the call goes on with
/// the answer.
pub async fn ask(turn: &mut Turn, call: &Call, asked: AskedElsewhere, tokens: i64) -> Stop {
    if let Err(stop) = guard::question(turn, call.position, &asked.question.prompt()).await {
        return stop;
    }
    let input = json!({"request_keys": asked.question.request_keys(), "asked_by": call.asked.name,
                       "question_id": asked.id, "tokens": tokens});
    let note = note(turn, call, question::TOOLS[0].to_owned(), input);
    let intent = intend(turn, &note, true, false);
    turn.pending().tool_calls.push(intent);
    Stop::Park(Box::new(Wait::Input(AskedUser { call_id: note.asked.call_id, question: asked.question })))
}

/// What our user answered to the questions of an agent elsewhere, each with the question's id; the newest is the last.
pub fn answers(turn: &Turn, call: &CallId) -> Vec<(String, Map<String, Value>)> {
    let answered = |row: &ToolCall| {
        let id = row.input["question_id"].as_str()?.to_owned();
        match &row.outcome {
            Some(ToolOutcome::Success { output: Value::Object(values) }) => Some((id, values.clone())),
            _ => None,
        }
    };
    notes(turn, call).filter_map(answered).collect()
}

/// Checks what our user answered, before anybody elsewhere sees it (OAS-42).
///
/// # Errors
/// [`Stop::Fail`] when an answer does not pass.
pub async fn check_answers(turn: &mut Turn, call: &Call) -> Result<(), Stop> {
    for (number, (_, values)) in answers(turn, &call.asked.call_id).into_iter().enumerate() {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let texts: Vec<String> = values.values().map(text).collect();
        guard::answers(turn, CHECKS * (number + 1) + call.position, &texts).await?;
    }
    Ok(())
}

/// The work for a call has ended, or nobody waits for it any more.
pub fn over(turn: &mut Turn, call: &CallId, outcome: &ToolOutcome) {
    let works = std::mem::take(&mut turn.abroad.under_way);
    let (ended, others): (Vec<_>, Vec<_>) = works.into_iter().partition(|work| work.call == *call);
    turn.abroad.under_way = others;
    if !matches!(outcome, ToolOutcome::Success { .. }) {
        call_off(ended);
    }
}

/// Tells whoever works elsewhere for this turn that nobody waits any more: the job was cancelled, or has failed for good.
pub fn abandon(turn: &mut Turn) {
    call_off(std::mem::take(&mut turn.abroad.under_way));
}

/// Nobody waits for that: what is lost costs the other side work, and no one an answer.
fn call_off(works: Vec<Work>) {
    for Work { tool, handle, .. } in works {
        tokio::spawn(async move { tool.call_off(&handle).await });
    }
}
