//! Remote calls: calls that an agent on another server works for. This module journals notes about them, asks
//! our user the remote agent's questions, and marks calls for cancellation. `runtime/remote_cancellations.rs` sends the
//! cancellations.
//!
//! A note is a row of the journal with an id of its own. It is durable before any step relies on it. So after
//! a takeover the next worker waits for the same remote work, and gives the same answers.

use crate::phases::resol;
use crate::policy::{self, Act, exposes};
use crate::state::journal::{self, Call};
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory};
use crate::tool::identity::PeerRequest;
use crate::tool::{RemoteQuestion, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::question::{self, AskedUser};
use turnstone_domain::tool_call::{AwayStep, ToolCall, ToolCallMove, ToolOutcome};
use turnstone_domain::{CallId, Wait};

/// The positions of notes among a turn's calls follow those of the calls themselves.
const PLACES: usize = 1_000;
/// The positions of answers among a turn's checks; each call has so many, after those of the agent itself.
const CHECKS: usize = 32;

/// The state of a remote call from before this process.
#[derive(Default)]
pub struct KnownRemoteCall {
    /// The handle of the remote work.
    pub handle: Option<Value>,
    /// The tokens that were booked for it.
    pub booked: i64,
}

/// The input of a note, as the journal keeps it: the handle of remote work, or a question to our user.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_keys: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<i64>,
}

/// Returns the state of the remote work for this call, from the journal.
pub fn known(past: &TurnHistory, call: &RequestedCall) -> KnownRemoteCall {
    let mut known = KnownRemoteCall::default();
    for row in notes(past, &call.call_id) {
        let note = Note::deserialize(&row.input).unwrap_or_default();
        known.handle = note.handle.filter(|_| row.name == call.name).or(known.handle);
        known.booked = known.booked.max(note.tokens.unwrap_or(0));
    }
    known
}

fn notes<'t>(past: &'t TurnHistory, call: &CallId) -> impl Iterator<Item = &'t ToolCall> {
    past.recalled_calls.iter().filter(|row| ToolCall::note_number(&row.call_id, call).is_some())
}

/// Records that after the next barrier a request is sent to a remote agent, or that the call waits for the work under this
/// handle. From then on the end of the job cancels that work.
pub fn record_sent(outbox: &mut Outbox, call: &CallId, tool: &Arc<dyn Tool>, handle: Option<&Value>) {
    away(outbox, call, tool, handle.map_or(AwayStep::Leaves, |handle| AwayStep::Works(handle.clone())));
}

fn away(outbox: &mut Outbox, call: &CallId, tool: &Arc<dyn Tool>, step: AwayStep) {
    if let Some(place) = tool.place() {
        let place = place.to_owned();
        outbox.pending.tool_calls.push(ToolCallMove::Away { call_id: call.clone(), place, step });
    }
}

/// Notes that a remote agent works for a call now. The note is durable with the next barrier.
pub fn begun(past: &mut TurnHistory, outbox: &mut Outbox, call: &Call, tool: &Arc<dyn Tool>, handle: &Value) {
    let requested = &call.asked;
    let input = Note { handle: Some(handle.clone()), ..Note::default() };
    let note = note(past, call, requested.name.clone(), &input);
    let intent = note.intend(outbox.position.turn, true, false);
    let outcome = ToolOutcome::Success { output: Value::Null };
    let settled = journal::settled(&note, outcome.into(), false);
    outbox.pending.tool_calls.extend([intent, settled]);
    away(outbox, &call.asked.call_id, tool, AwayStep::Works(handle.clone()));
}

/// Returns the next note about a call.
fn note(past: &mut TurnHistory, call: &Call, name: String, input: &Note) -> Call {
    let id = &call.asked.call_id;
    let (number, call_id) = past.next_note(id);
    past.noted.push(call_id.clone());
    let requested = RequestedCall { call_id, name, arguments: json!(input) };
    Call {
        asked: requested,
        position: PLACES * (call.position + 1) + number,
        journalled: None,
        stub_of: None,
    }
}

/// Returns true if the agent of this turn may ask its user; then questions of remote agents are passed on. An
/// agent that works behind an output guardrail may not ask (OAS-43).
pub fn may_ask(claimed: &Claimed, bodies: &Bodies) -> bool {
    !claimed.agent.guardrails.for_guarded
        && question::TOOLS.iter().any(|name| resol::capability(claimed, bodies, name).is_some())
}

/// Returns the outcome for the model if a remote agent's question may not be asked.
pub fn unasked(requested: &RemoteQuestion) -> ToolOutcome {
    let text = format!(
        "it asks its user, and an agent needs the capability `{}` and no output guardrail to pass the question on: {}",
        question::TOOLS[1],
        crate::tool::outbound::excerpt(&requested.question.prompt(), 300)
    );
    ToolOutcome::failed(FailureKind::Tool, text).again_is_useless()
}

/// Asks our user a remote agent's question; `tokens` were booked for the call so far. The job parks, and the
/// answer resumes the call.
pub async fn ask(
    past: &mut TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    requested: RemoteQuestion,
    tokens: i64,
) -> Stop {
    let prompt = requested.question.prompt();
    if let Err(stop) = policy::may(past, outbox, Act::Question(call.position, &prompt)).await {
        return stop;
    }
    let input = Note {
        handle: None,
        request_keys: Some(requested.question.request_keys()),
        asked_by: Some(call.asked.name.clone()),
        question_id: Some(requested.id),
        tokens: Some(tokens),
    };
    let note = note(past, call, question::TOOLS[0].to_owned(), &input);
    let intent = note.intend(outbox.position.turn, true, false);
    outbox.pending.tool_calls.push(intent);
    let (call_id, question, exposes) =
        (note.asked.call_id, requested.question, exposes::now(&outbox.claimed, past));
    Wait::Input(AskedUser { call_id, question, exposes }).into()
}

/// Returns the request to a remote agent, which may spend `set_aside` tokens; `handle` is that of the work that it has
/// begun.
pub fn peer_request(
    claimed: &Claimed,
    past: &TurnHistory,
    call: &CallId,
    set_aside: i64,
    handle: Option<&Value>,
) -> PeerRequest {
    // The end user is the same on every server (agents brief §1.3).
    let user = &claimed.engagement.user;
    PeerRequest {
        depth: claimed.depth + 1,
        token_budget: set_aside,
        user: user.is_known().then(|| user.clone()),
        tokens_used: AtomicI64::new(0),
        handle: handle.cloned(),
        answers: answers(past, call),
    }
}

/// Returns a value of an answer as text.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns our user's answers to the questions of a remote agent, each with the question's id, the newest
/// last.
fn answers(past: &TurnHistory, call: &CallId) -> Vec<(String, Map<String, Value>)> {
    let answered = |row: &ToolCall| {
        let id = Note::deserialize(&row.input).ok()?.question_id?;
        match &row.outcome {
            Some(ToolOutcome::Success { output: Value::Object(values) }) => Some((id, values.clone())),
            _ => None,
        }
    };
    notes(past, call).filter_map(answered).collect()
}

/// Checks our user's answers before they are sent to the remote agent (OAS-42, RS-08).
///
/// # Errors
/// [`Stop::Fail`] when an answer does not pass.
pub async fn check_answers(past: &TurnHistory, outbox: &mut Outbox, call: &Call) -> Result<(), Stop> {
    for (number, (_, values)) in answers(past, &call.asked.call_id).into_iter().enumerate() {
        let texts: Vec<String> = values.values().map(text).collect();
        policy::may(past, outbox, Act::Reply(CHECKS * (number + 1) + call.position, &texts)).await?;
    }
    Ok(())
}

/// Records that the job no longer waits for the remote work of a call. The work has `ended` or never began;
/// else it is cancelled.
pub fn over(outbox: &mut Outbox, call: &CallId, tool: &Arc<dyn Tool>, ended: bool) {
    away(outbox, call, tool, if ended { AwayStep::Over } else { AwayStep::Abandoned });
}
