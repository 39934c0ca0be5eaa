//! One tool call, from the model's request to the outcome that the model receives.
//!
//! Its journal row moves from planned ([`plan`]) to sent ([`record_sent`]) to settled ([`note_outcome`]). These functions only
//! add to the pending write; the caller runs the barriers. [`try_once`] sends the request.

use super::artifacts;
use super::identity::{self, RemotePart};
use super::pay;
use super::restriction::{self, Checked};
use crate::phases::{infer, resol};
use crate::state::{Secured, Stop, Turn, trace};
use crate::tool::{Invocation, RemoteQuestion, Tool, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracing::Instrument;
use turnstone_domain::agent::Capability;
use turnstone_domain::artifact::NewArtifact;
use turnstone_domain::engagement::outputs_of;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall};
use turnstone_domain::tool_call::{Handled, ToolCall, ToolCallMove, ToolCallState, ToolOutcome};
use turnstone_domain::{CallId, EventName, JobError};

/// The most bytes of an output inside its event; a longer output is read from the journal.
const SHOWN_OUTPUT: usize = 4096;

/// A call in progress.
pub struct Call {
    /// The model's request.
    pub asked: RequestedCall,
    /// Its position among the calls of the turn.
    pub position: usize,
    /// The state of its journal row, as recorded so far; `None` when there is no row yet.
    pub journalled: Option<ToolCallState>,
    /// In a fork: the recorded call whose outcome it reuses, so that it does not run.
    pub stub_of: Option<CallId>,
}

/// The result of one try.
pub struct Made {
    /// The outcome.
    pub outcome: ToolOutcome,
    /// The effect of the request, if it can be known.
    pub fate: Fate,
    /// True if the circuit breaker counts it as a failure of the tool; false for a wrong request.
    pub counts: bool,
    /// The duration of the try, in milliseconds.
    pub duration_ms: i64,
    /// The tokens that a remote agent used for the call so far.
    pub tokens: i64,
    /// A message of a remote agent that still works; then `outcome` has no meaning.
    pub news: Option<News>,
    /// The files that it made.
    pub artifacts: Vec<NewArtifact>,
}

/// The effect of a request, if its caller can know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It had no effect: it did not arrive, or the tool rejected it.
    Undone,
    /// The tool answered it.
    Answered,
    /// No answer came, so it may or may not have had its effect.
    Unknown,
}

/// A message of a remote agent before there is an outcome.
pub enum News {
    /// It has begun, and can be asked about the work by this handle.
    Begun(Value),
    /// It asks its user a question.
    Asks(RemoteQuestion),
}

/// Repeats a call of an earlier turn, under the same checks as the first time. Returns the text for the model. Afterwards
/// the call's journal row has the new outcome.
///
/// # Errors
/// As [`super::run`].
pub async fn repeat(turn: &mut Turn, row: ToolCall, requested: RequestedCall) -> Result<String, Stop> {
    let position = usize::try_from(row.position).unwrap_or_default();
    let mut call = Call { asked: requested, position, journalled: Some(row.state), stub_of: None };
    let (tool, capability) = match usable(turn, &call) {
        Ok(found) => found,
        Err(refusal) => return Ok(refused_again(turn, &call, &refusal)),
    };
    if tool.tokens().is_some() {
        let text = "calls of remote agents are not repeated; ask in a new turn";
        return Ok(refused_again(turn, &call, &ToolOutcome::refused(FailureKind::Tool.code(), text)));
    }
    if row.state == ToolCallState::Sent {
        let idempotent = row.idempotent && is_idempotent(&tool, &capability);
        if !idempotent && !restriction::may_resend(turn, &call, row.sends - known_failures(&row))? {
            let text = "the outcome of this call is unknown: it may or may not have had its effect";
            return Ok(refused_again(turn, &call, &ToolOutcome::failed(FailureKind::Tool.code(), text)));
        }
    } else if let Checked::Denied(refusal) =
        restriction::before(turn, &call, &capability, is_declared_idempotent(&tool, &capability))?
    {
        return Ok(refused_again(turn, &call, &refusal));
    }
    turn.outbox.secure().await?;
    turn.outbox.unless_frozen(&turn.claimed).await?;
    record_sent(turn, &mut call, is_idempotent(&tool, &capability), true);
    pay::barrier(turn, vec![(call.asked.call_id.clone(), call.asked.name.clone())], 0).await?;
    let remote = RemotePart { call: &call.asked.call_id, set_aside: 0, handle: None };
    let made = try_once(turn, turn.outbox.secured()?, &call, (&tool, &capability), remote).await;
    let Made { mut outcome, duration_ms, artifacts, .. } = made;
    let files = artifacts::admit(turn, &call, &mut outcome, artifacts).await?;
    let text = known_again(turn, &call, &capability, outcome, duration_ms);
    // Without a review of this output neither it nor its files are published.
    if !capability.output_restriction.restricts() {
        artifacts::put(turn, &call, files, capability.collect_results);
    }
    Ok(text)
}

/// Journals the outcome of a repeated call; returns the text for the model.
pub fn known_again(
    turn: &mut Turn,
    call: &Call,
    capability: &Capability,
    outcome: ToolOutcome,
    duration_ms: i64,
) -> String {
    let outcome = turn.claimed.screen_outcome(&mut turn.outbox, &call.asked.name, outcome);
    let denied = restriction::after(turn, call, capability, &outcome);
    // A reviewer decided about the first outcome; this one was not reviewed, so it is not published.
    let reviewed = capability.output_restriction.is_reviewed();
    let withheld = denied.is_some() || reviewed || !capability.collect_results;
    note_outcome(turn, call, &outcome, None, duration_ms, withheld);
    match denied {
        Some(denial) => denial.for_model(),
        None if reviewed => "withheld, because a reviewer has to approve this output".to_owned(),
        None => outcome.for_model(),
    }
}

/// Journals the reason why a call was not repeated; returns the text for the model.
pub fn refused_again(turn: &mut Turn, call: &Call, refusal: &ToolOutcome) -> String {
    note_outcome(turn, call, refusal, None, 0, false);
    refusal.for_model()
}

/// Returns true if a call may run twice under the same idempotency key: the tool is declared idempotent, or its MCP server
/// announces that it is.
pub fn is_idempotent(tool: &Arc<dyn Tool>, capability: &Capability) -> bool {
    is_declared_idempotent(tool, capability) || tool.announces_idempotence()
}

/// Returns true if the configuration or the agent's document (OSSA `idempotency`) declares a tool idempotent. Reviews
/// rely on this declaration alone, and on no announcement of a server.
pub fn is_declared_idempotent(tool: &Arc<dyn Tool>, capability: &Capability) -> bool {
    tool.spec().idempotent || capability.errors.idempotent
}

/// Returns the number of requests of a call that were sent and are known to have failed.
pub fn known_failures(row: &ToolCall) -> i64 {
    // A circuit breaker refuses a call before a request is sent.
    let sent = row.tried.iter().filter(|tried| tried.code != FailureKind::CircuitOpen.code());
    i64::try_from(sent.count()).unwrap_or(0)
}

/// Counts the call for `short_circuit`: the agent's document names how often the same sequence of calls may repeat
/// (OAS-53). A call with a journal row was counted when the claim was taken.
///
/// # Errors
/// [`Stop::Fail`] at the repetition that the document forbids, which ends the engagement.
pub fn watch_repetition(turn: &mut Turn, call: &Call) -> Result<(), Stop> {
    if call.journalled.is_some() {
        return Ok(());
    }
    let Some(watch) = &mut turn.past.short_circuit else { return Ok(()) };
    if !watch.attempt(&call.asked.name) {
        return Ok(());
    }
    let message = format!(
        "short_circuit {}: the agent repeats the same calls, last `{}`; the engagement is ended",
        turn.claimed.agent.short_circuit.unwrap_or_default(),
        call.asked.name
    );
    Err(JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-53").into())
}

/// Returns the tool of a call and its capability, after the checks of name, arguments and identity. `allowed` is false for a
/// call beyond the permitted number.
///
/// # Errors
/// The refusal, as the outcome for the model.
pub fn callable(
    turn: &mut Turn,
    call: &Call,
    allowed: bool,
) -> Result<(Arc<dyn Tool>, Capability), ToolOutcome> {
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

/// Does the same without the limits of the turn, for a call of an earlier turn.
fn usable(turn: &mut Turn, call: &Call) -> Result<(Arc<dyn Tool>, Capability), ToolOutcome> {
    let name = &call.asked.name;
    if let Some(refusal) = forbidden(turn, name) {
        return Err(refusal);
    }
    let offered = turn.bodies.resolved().is_ok_and(|resolved| resolved.tools.contains(name));
    let found = resol::callable(turn, name).zip(resol::offer(turn, name));
    let Some(((tool, capability), offer)) = found.filter(|_| offered) else {
        let text = format!("this agent has no tool `{name}`");
        return Err(ToolOutcome::refused(FailureKind::ToolNotFound.code(), text));
    };
    // The agent's schema narrows that of the registry; it never replaces it.
    let checked = [&offer.input_schema, &tool.spec().input_schema]
        .into_iter()
        .try_for_each(|schema| turn.claimed.deps.check(schema, &call.asked.arguments));
    if let Err(why) = checked {
        let text = format!("the arguments do not match the schema of `{name}`: {why}");
        return Err(ToolOutcome::refused(FailureKind::ToolInput.code(), text));
    }
    if let Some(refusal) = identity::refusal(turn, &capability, &*tool) {
        return Err(refusal);
    }
    Ok((tool, capability))
}

/// Returns the refusal of a call that the agent's document forbids (OSSA `autonomy`).
pub fn forbidden(turn: &Turn, name: &str) -> Option<ToolOutcome> {
    let setting = turn.claimed.agent.actions.forbids(name)?;
    let text = format!("`{name}` may not be called: {setting} of the agent forbids it");
    Some(ToolOutcome::refused(FailureKind::Policy.code(), text))
}

/// Journals a call as planned, unless it has a row: its request is not sent yet.
pub fn plan(turn: &mut Turn, call: &mut Call, idempotent: bool) {
    if call.journalled.is_none() {
        let intent = intend(turn, call, idempotent, false);
        turn.outbox.pending.tool_calls.push(intent);
        call.journalled = Some(ToolCallState::Planned);
    }
}

/// Journals a call as sent: the caller sends the request directly after the next barrier. `publishes` adds the event
/// `tool.called`.
pub fn record_sent(turn: &mut Turn, call: &mut Call, idempotent: bool, publishes: bool) {
    let intent = match call.journalled {
        Some(_) => ToolCallMove::Send { call_id: call.asked.call_id.clone() },
        None => intend(turn, call, idempotent, true),
    };
    turn.outbox.pending.tool_calls.push(intent);
    call.journalled = Some(ToolCallState::Sent);
    if publishes {
        called(turn, call);
    }
}

/// Records the event `tool.called`. It precedes every event of the outcome.
pub fn called(turn: &mut Turn, call: &Call) {
    let requested = &call.asked;
    let data = json!({"call_id": requested.call_id, "name": requested.name, "input": requested.arguments});
    turn.outbox.event(&turn.claimed, EventName::ToolCalled, data);
}

/// Returns the write that adds a journal row for the call.
pub fn intend(turn: &Turn, call: &Call, idempotent: bool, sent: bool) -> ToolCallMove {
    ToolCallMove::Intend {
        call_id: call.asked.call_id.clone(),
        turn: turn.outbox.position.turn,
        position: i64::try_from(call.position).unwrap_or(i64::MAX),
        name: call.asked.name.clone(),
        input: call.asked.arguments.clone(),
        idempotent,
        sent,
    }
}

/// Sends the request and waits for its result, once. Errors of the tool are part of the result.
pub async fn try_once(
    turn: &Turn,
    secured: Secured<'_>,
    call: &Call,
    (tool, capability): (&Arc<dyn Tool>, &Capability),
    remote: RemotePart<'_>,
) -> Made {
    let identity = match identity::of(turn, secured, &**tool, capability, remote).await {
        Ok(identity) => identity,
        Err(outcome) => {
            let (duration_ms, tokens, artifacts) = (0, 0, Vec::new());
            let (fate, counts, news) = (Fate::Undone, false, None);
            return Made { outcome, fate, counts, duration_ms, tokens, news, artifacts };
        }
    };
    let span = trace::call(&turn.claimed, &call.asked, &**tool, capability);
    let timeout =
        capability.timeout_ms.map_or(tool.timeout(), |ms| tool.timeout().min(Duration::from_millis(ms)));
    let invocation = Invocation {
        call_id: &call.asked.call_id,
        input: &call.asked.arguments,
        timeout,
        identity: &identity,
    };
    let began = Instant::now();
    let answer = tool.answer(invocation).instrument(span.clone()).await;
    let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    let failed = |text| ToolOutcome::failed(FailureKind::Tool.code(), text);
    let mut news = None;
    let mut artifacts = Vec::new();
    let (outcome, fate, counts) = match answer {
        Ok(answer) => {
            artifacts = answer.artifacts;
            (ToolOutcome::Success { output: answer.output }, Fate::Answered, false)
        }
        Err(ToolError::Failed(text)) => (failed(text), Fate::Answered, true),
        Err(ToolError::Answered(text)) => (failed(text), Fate::Answered, false),
        Err(ToolError::Unreached(text)) => (failed(text), Fate::Undone, true),
        Err(ToolError::Final(text)) => (failed(text).again_is_useless(), Fate::Answered, false),
        Err(ToolError::Busy(text, wait_ms)) => (failed(text).retry_after(wait_ms), Fate::Undone, false),
        Err(ToolError::Lost(text)) => (failed(text), Fate::Unknown, true),
        Err(ToolError::Timeout(text)) => {
            (ToolOutcome::failed(FailureKind::ToolTimeout.code(), text), Fate::Unknown, true)
        }
        Err(ToolError::Refused(text)) => {
            (ToolOutcome::refused(FailureKind::Tool.code(), text), Fate::Undone, false)
        }
        Err(ToolError::Begun(handle)) => {
            news = Some(News::Begun(*handle));
            (ToolOutcome::Success { output: Value::Null }, Fate::Answered, false)
        }
        Err(ToolError::Asks(requested)) => {
            news = Some(News::Asks(*requested));
            (ToolOutcome::Success { output: Value::Null }, Fate::Answered, false)
        }
    };
    let outcome = match news {
        None => formed(turn, mapped(outcome, capability), call, capability),
        Some(_) => outcome,
    };
    trace::returned(&turn.claimed, &span, &call.asked.name, capability, &outcome);
    let tokens = identity
        .peer_request
        .as_ref()
        .map_or(0, |peer_request| peer_request.tokens_used.load(Ordering::Relaxed));
    Made { outcome, fate, counts, duration_ms, tokens, news, artifacts }
}

/// Returns the outcome unchanged if the output matches the schema that the capability declares (OSSA `output_schema`).
/// Otherwise returns an error.
fn formed(turn: &Turn, outcome: ToolOutcome, call: &Call, capability: &Capability) -> ToolOutcome {
    let (ToolOutcome::Success { output }, Some(schema)) = (&outcome, &capability.output_schema) else {
        return outcome;
    };
    match turn.claimed.deps.check(schema, output) {
        Ok(()) => outcome,
        Err(why) => {
            let text = format!("the output of `{}` does not match its output_schema: {why}", call.asked.name);
            ToolOutcome::failed(FailureKind::ToolInput.code(), text)
        }
    }
}

/// Replaces the code of a tool's error by the one that the agent's document maps its text to (OSSA `error_mapping`).
fn mapped(mut outcome: ToolOutcome, capability: &Capability) -> ToolOutcome {
    if let ToolOutcome::Error { code, message, .. } = &mut outcome
        && let Some(kind) = capability.errors.mapped(message)
    {
        kind.code().clone_into(code);
    }
    outcome
}

/// Delivers an outcome that an earlier attempt settled to the model.
///
/// # Errors
/// [`Stop::Park`] while its output waits for a review, [`Stop::Fail`] when the review rejected it.
pub fn release(turn: &mut Turn, call: &Call, outcome: ToolOutcome, duration_ms: i64) -> Result<(), Stop> {
    if let Some(capability) = resol::capability(turn, &call.asked.name)
        && capability.output_restriction.is_reviewed()
        && outcome.was_invoked()
    {
        restriction::review_output(turn, call, &capability, &outcome)?;
        if capability.collect_results {
            let step = settled(call, &outcome, None, duration_ms, false);
            turn.outbox.pending.tool_calls.push(step);
            if let Some(object) = &mut turn.past.object {
                object.reveal(&call.asked.name, &outputs_of(&outcome));
            }
        }
    }
    turn.past.say(
        &turn.claimed,
        &mut turn.outbox,
        Message::tool(call.asked.call_id.clone(), outcome.for_model()),
    );
    Ok(())
}

fn settled(
    call: &Call,
    outcome: &ToolOutcome,
    handled: Option<Handled>,
    duration_ms: i64,
    withheld: bool,
) -> ToolCallMove {
    let call_id = call.asked.call_id.clone();
    ToolCallMove::Settle { call_id, outcome: outcome.clone(), handled, duration_ms, withheld }
}

/// Journals an outcome and records its event. A `withheld` output is in no event and in no view.
pub fn note_outcome(
    turn: &mut Turn,
    call: &Call,
    outcome: &ToolOutcome,
    handled: Option<Handled>,
    duration_ms: i64,
    withheld: bool,
) {
    let step = settled(call, outcome, handled.clone(), duration_ms, withheld);
    turn.outbox.pending.tool_calls.push(step);
    let (call_id, name) = (&call.asked.call_id, &call.asked.name);
    let (event, mut data) = match outcome {
        ToolOutcome::Success { output } => {
            let mut data = json!({"call_id": call_id, "name": name, "duration_ms": duration_ms});
            let bytes = output.to_string().len();
            if !withheld && bytes <= SHOWN_OUTPUT {
                data["output"] = output.clone();
            } else if !withheld {
                data["output_bytes"] = bytes.into();
            }
            (EventName::ToolCompleted, data)
        }
        ToolOutcome::Error { .. } => {
            let mut data = outcome.event_data().unwrap_or_default();
            data["call_id"] = json!(call_id);
            data["name"] = json!(name);
            (EventName::ToolFailed, data)
        }
    };
    if let Some(of) = &call.stub_of {
        data["stub_of"] = json!(of);
    }
    if let Some(handled) = handled {
        data["handled"] = json!(handled);
    }
    turn.outbox.event(&turn.claimed, event, data);
}
