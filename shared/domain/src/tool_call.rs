//! The tool journal: the plan, the sending and the outcome of each call (design §4, OSSA §1.5).

use crate::error::{FailureKind, Strategy};
use crate::event::Failure;
use crate::{CallId, JobError, ReviewId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The state of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallState {
    /// Requested by the model; nothing was sent (it may be waiting for a review).
    Planned,
    /// The request may have reached the tool. Without an outcome after a crash, its effect is unknown.
    Sent,
    /// The outcome is known.
    Settled,
}

impl ToolCallState {
    /// Returns the state as on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Sent => "sent",
            Self::Settled => "settled",
        }
    }

    /// Reads a state; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Planned, Self::Sent, Self::Settled].into_iter().find(|state| state.as_str() == text)
    }
}

/// How a call ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool answered.
    Success {
        /// Its output.
        output: Value,
    },
    /// The tool failed, or the call was refused before it was made.
    Error {
        /// A stable code such as `AGENT_TOOL_NOT_FOUND`.
        code: String,
        /// The failure, for the model to read.
        message: String,
        /// True if the tool was really invoked: only invoked calls are in the engagement's history.
        #[serde(default)]
        invoked: bool,
        /// True if the same call may succeed another time; `None` follows its code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retryable: Option<bool>,
        /// The wait that the tool requested, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
}

impl ToolOutcome {
    /// Returns a refusal before the call was made. The code is that of a [`FailureKind`], or a word of its own.
    #[must_use]
    pub fn refused(code: impl AsRef<str>, message: impl Into<String>) -> Self {
        Self::error(code.as_ref(), message.into(), false)
    }

    /// Returns a failure of a call that was made.
    #[must_use]
    pub fn failed(code: impl AsRef<str>, message: impl Into<String>) -> Self {
        Self::error(code.as_ref(), message.into(), true)
    }

    fn error(code: &str, message: String, invoked: bool) -> Self {
        Self::Error { code: code.to_owned(), message, invoked, retryable: None, retry_after_ms: None }
    }

    /// Returns the same, when another try of the call can only fail the same way.
    #[must_use]
    pub fn again_is_useless(mut self) -> Self {
        if let Self::Error { retryable, .. } = &mut self {
            *retryable = Some(false);
        }
        self
    }

    /// Returns the same with the wait that the tool requested, in milliseconds.
    #[must_use]
    pub fn retry_after(mut self, ms: Option<u64>) -> Self {
        if let Self::Error { retry_after_ms, .. } = &mut self {
            *retry_after_ms = ms;
        }
        self
    }

    /// Returns the kind of the failure; `None` for a success and for codes that are not ours.
    #[must_use]
    pub fn failure(&self) -> Option<FailureKind> {
        match self {
            Self::Success { .. } => None,
            Self::Error { code, .. } => FailureKind::of_code(code),
        }
    }

    /// Returns the error as a job would carry it; `None` for a success.
    #[must_use]
    pub fn as_error(&self) -> Option<JobError> {
        let Self::Error { code, message, retryable, retry_after_ms, .. } = self else { return None };
        let kind = FailureKind::of_code(code).unwrap_or(FailureKind::Tool);
        let error = JobError::new(kind, message.as_str()).retry_after(*retry_after_ms);
        Some(JobError { retryable: retryable.unwrap_or(error.retryable), ..error })
    }

    /// Returns the error in the form of event data (see [`JobError::event_data`]), with the code that the tool gave; `None`
    /// for a success.
    #[must_use]
    pub fn event_data(&self) -> Option<Failure> {
        let Self::Error { code, .. } = self else { return None };
        Some(Failure { code: code.clone(), ..self.as_error()?.event_data() })
    }

    /// Returns the outcome as clients see it: an error with OSSA's code, the OJS type and whether it is recoverable,
    /// and a timeout as OSSA §1.5 names it.
    #[must_use]
    pub fn shown(&self) -> Value {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        if let (Value::Object(fields), Some(error)) = (&mut shown, self.as_error()) {
            if error.kind == FailureKind::ToolTimeout {
                fields.insert("status".to_owned(), "timeout".into());
            }
            fields.insert("type".to_owned(), error.error_type().into());
            fields.extend(error.facts());
        }
        shown
    }

    /// Returns true if the tool was really invoked.
    #[must_use]
    pub fn was_invoked(&self) -> bool {
        !matches!(self, Self::Error { invoked: false, .. })
    }

    /// Returns the outcome as text for the model.
    #[must_use]
    pub fn for_model(&self) -> String {
        match self {
            Self::Success { output: Value::String(text) } => text.clone(),
            Self::Success { output } => output.to_string(),
            Self::Error { code, message, .. } => format!("error {code}: {message}"),
        }
    }
}

/// The separator between the id of a call and the number of a note about it.
const NOTE: &str = ".note-";

impl ToolCall {
    /// Returns the id of the `number`-th note about a call: a row beside the call's own, which is no call.
    #[must_use]
    pub fn note_id(call: &CallId, number: usize) -> CallId {
        CallId(format!("{call}{NOTE}{number}"))
    }

    /// Returns the call of an id or of a note's id, and the part of the id that names the note: empty for a call.
    #[must_use]
    pub fn parted_id(id: &str) -> (&str, &str) {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let at = id.rfind(NOTE).filter(|at| is_number(&id[at + NOTE.len()..]));
        id.split_at(at.unwrap_or(id.len()))
    }

    /// Returns true if the row is such a note: a remote agent that works for a call, or its question to the user.
    #[must_use]
    pub fn is_note(&self) -> bool {
        !Self::parted_id(self.call_id.as_str()).1.is_empty()
    }

    /// Returns the number of a note about this call; `None` for any other id.
    #[must_use]
    pub fn note_number(id: &CallId, call: &CallId) -> Option<usize> {
        id.as_str().strip_prefix(call.as_str())?.strip_prefix(NOTE)?.parse().ok()
    }
}

/// A try that failed before the last one (RS-27).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// The code of the failure; its event has the message.
    pub code: String,
    /// How long the try took, in milliseconds.
    pub duration_ms: i64,
    /// When it had failed.
    pub at: Timestamp,
    /// The tool that was tried, when it was not the call's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// The reaction of a handler to a failed call (OSSA §2, RS-50).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Handled {
    /// The strategy.
    pub strategy: Strategy,
    /// The code of the failure.
    pub code: String,
    /// The error message.
    pub message: String,
}

/// A row of the journal, or a change to one.
#[derive(Clone, PartialEq, Debug)]
pub enum ToolCallMove {
    /// A new row. `sent` when the request leaves right after this commit, else planned.
    Intend {
        /// The call's id and idempotency key.
        call_id: CallId,
        /// The turn that asked for it.
        turn: i64,
        /// Position among the calls of the turn, from 0.
        position: i64,
        /// The capability's name.
        name: String,
        /// The arguments.
        input: Value,
        /// True if the tool may be called twice with the same key.
        idempotent: bool,
        /// True if the request leaves right after this commit.
        sent: bool,
    },
    /// The request of a planned (or, with an approved review, unknown) call leaves right after this commit.
    Send {
        /// The call.
        call_id: CallId,
    },
    /// The call is not made: it reuses another call's outcome. Beside the call's own row.
    StandIn {
        /// The call.
        call_id: CallId,
        /// The call that was made.
        of: CallId,
    },
    /// A remote agent's work for the call. Beside the call's own row.
    Away {
        /// The call.
        call_id: CallId,
        /// The agent: its name in the configuration, or its address.
        place: String,
        /// The step.
        step: AwayStep,
    },
    /// A try failed, its failure is known, and the call continues: nothing has been sent since, so it is planned again.
    Retry {
        /// The call.
        call_id: CallId,
        /// The failed try.
        tried: Tried,
        /// The tool that is called instead from now on; `None` repeats the same.
        instead: Option<String>,
    },
    /// The outcome is known.
    Settle {
        /// The call.
        call_id: CallId,
        /// How it ended.
        outcome: ToolOutcome,
        /// The reaction of a handler to a failure.
        handled: Option<Handled>,
        /// How long the call took, in milliseconds.
        duration_ms: i64,
        /// True if the output is withheld from the outside (OAS-24 `collect_results`, OAS-35 a denied output).
        withheld: bool,
    },
}

/// A step of a remote agent's work for a call.
#[derive(Clone, PartialEq, Debug)]
pub enum AwayStep {
    /// A request leaves for it right after this commit.
    Leaves,
    /// It works under this handle.
    Works(Value),
    /// It has ended there.
    Over,
    /// Its result is no longer needed, and it may still run there: it has to be cancelled.
    Abandoned,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A row of the journal as stored.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id and idempotency key.
    pub call_id: CallId,
    /// The turn that asked for it.
    pub turn: i64,
    /// Position among the calls of the turn, from 0.
    pub position: i64,
    /// The capability's name.
    pub name: String,
    /// The arguments.
    pub input: Value,
    /// True if the tool may be called twice with the same key.
    pub idempotent: bool,
    /// The state.
    pub state: ToolCallState,
    /// How often its request may have left.
    pub sends: i64,
    /// How it ended; `None` until settled.
    pub outcome: Option<ToolOutcome>,
    /// True if the output is withheld from the outside.
    pub withheld: bool,
    /// How long the call took, in milliseconds; `None` until settled.
    pub duration_ms: Option<i64>,
    /// When the model requested it.
    pub created_at: Timestamp,
    /// The latest review about it, if any.
    pub review_id: Option<ReviewId>,
    /// True if a client requested that it be made again, and that has not happened yet.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
    /// The tool that is called instead of its own: when it is made again, or as the fallback of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tries beyond the first.
    pub retries: i64,
    /// The tries that failed before the last one, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The reaction of a handler to a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled: Option<Handled>,
    /// When its first request may have left.
    pub started_at: Option<Timestamp>,
    /// When its outcome was known.
    pub completed_at: Option<Timestamp>,
    /// The call whose recorded outcome it reuses: it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stub_of: Option<CallId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note belongs to its call, even if the call's id contains the separator.
    #[test]
    fn an_id_says_whether_it_is_a_note() {
        let call = CallId("c-1".into());
        assert_eq!(ToolCall::parted_id(ToolCall::note_id(&call, 12).as_str()), ("c-1", ".note-12"));
        for id in ["c-1", "", ".note-", "c.note-", "c.note-x", "c.note-1x"] {
            assert_eq!(ToolCall::parted_id(id), (id, ""));
        }
    }
}
