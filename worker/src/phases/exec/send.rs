//! Sends the request of a call once, and waits for its result.

use super::identity;
use crate::state::journal::Call;
use crate::state::tools::{Callable, timeout};
use crate::state::{Claimed, Secured, trace};
use crate::tool::identity::PeerRequest;
use crate::tool::{Invocation, RemoteQuestion, ToolError, without_nul};
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tracing::Instrument;
use turnstone_domain::agent::Capability;
use turnstone_domain::artifact::NewArtifact;
use turnstone_domain::error::FailureKind;
use turnstone_domain::tool_call::ToolOutcome;

/// The result of one try.
pub struct Made {
    /// The outcome.
    pub outcome: ToolOutcome,
    /// The effect of the request, if it can be known.
    pub fate: Fate,
    /// True if the circuit breaker counts it as a failure of the tool; false for a wrong request.
    pub counts: bool,
    /// True if its error is information that the model can use at once: the tool itself reported it, or no connection
    /// could be made.
    pub informs: bool,
    /// The duration of the try, in milliseconds.
    pub duration_ms: i64,
    /// The tokens that a remote agent used for the call so far.
    pub tokens: i64,
    /// A message of a remote agent that still works; then `outcome` has no meaning.
    pub news: Option<News>,
    /// The files that it made.
    pub artifacts: Vec<NewArtifact>,
    /// The parts of the answer that could not be read as they were sent, in sentences.
    pub notes: Vec<String>,
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

/// Sends the request and waits for its result, once. Errors of the tool are part of the result.
pub async fn try_once(
    claimed: &Claimed,
    secured: Secured<'_>,
    call: &Call,
    callable: &Callable,
    peer_request: Option<PeerRequest>,
) -> Made {
    let Callable { tool, capability } = callable;
    let identity = match identity::of(claimed, secured, callable, peer_request).await {
        Ok(identity) => identity,
        Err(outcome) => {
            let (duration_ms, tokens, artifacts, notes) = (0, 0, Vec::new(), Vec::new());
            let (fate, counts, informs, news) = (Fate::Undone, false, true, None);
            return Made { outcome, fate, counts, informs, duration_ms, tokens, news, artifacts, notes };
        }
    };
    let span = trace::call(claimed, &call.asked, callable);
    let invocation = Invocation {
        call_id: &call.asked.call_id,
        input: &call.asked.arguments,
        timeout: timeout(&**tool, capability),
        identity: &identity,
    };
    let began = Instant::now();
    let answer = without_nul(tool.answer(invocation).instrument(span.clone()).await);
    let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    // A code that the document maps the error to has its own number of tries.
    let informs = matches!(&answer, Err(ToolError::Answered(text) | ToolError::Unreached(text))
        if capability.errors.mapped(text).is_none());
    let failed = |text| ToolOutcome::failed(FailureKind::Tool, text);
    let mut news = None;
    let (mut artifacts, mut notes) = (Vec::new(), Vec::new());
    let (outcome, fate, counts) = match answer {
        Ok(answer) => {
            (artifacts, notes) = (answer.artifacts, answer.notes);
            (ToolOutcome::Success { output: answer.output }, Fate::Answered, false)
        }
        Err(ToolError::Failed(text)) => (failed(text), Fate::Answered, true),
        Err(ToolError::Answered(text)) => (failed(text), Fate::Answered, false),
        Err(ToolError::Unreached(text)) => (failed(text), Fate::Undone, true),
        Err(ToolError::Final(text)) => (failed(text).again_is_useless(), Fate::Answered, false),
        Err(ToolError::Busy(text, wait_ms)) => (failed(text).retry_after(wait_ms), Fate::Undone, false),
        Err(ToolError::Lost(text)) => (failed(text), Fate::Unknown, true),
        Err(ToolError::Timeout(text)) => {
            (ToolOutcome::failed(FailureKind::ToolTimeout, text), Fate::Unknown, true)
        }
        Err(ToolError::Refused(text)) => (ToolOutcome::refused(FailureKind::Tool, text), Fate::Undone, false),
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
        None => formed(claimed, mapped(outcome, capability), call, capability),
        Some(_) => outcome,
    };
    trace::returned(claimed, &span, &call.asked.name, capability, &outcome);
    let tokens = identity.peer_request.as_ref().map_or(0, |peer| peer.tokens_used.load(Ordering::Relaxed));
    Made { outcome, fate, counts, informs, duration_ms, tokens, news, artifacts, notes }
}

/// Returns the outcome unchanged if the output matches the schema that the capability declares (OSSA `output_schema`).
/// Otherwise returns an error.
fn formed(claimed: &Claimed, outcome: ToolOutcome, call: &Call, capability: &Capability) -> ToolOutcome {
    let (ToolOutcome::Success { output }, Some(schema)) = (&outcome, &capability.output_schema) else {
        return outcome;
    };
    match claimed.deps.check(schema, output) {
        Ok(()) => outcome,
        Err(why) => {
            let text = format!("the output of `{}` does not match its output_schema: {why}", call.asked.name);
            ToolOutcome::failed(FailureKind::ToolInput, text)
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
