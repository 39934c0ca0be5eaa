//! The one taxonomy of errors (OSSA §2, OJS core §7, agent extension §3): kinds and codes, strategies, and
//! the error that a job carries.

mod class;
mod kind;
mod unreached;

pub use class::{ErrorClass, Escalation, EscalationType, Strategy};
pub use kind::FailureKind;
pub use unreached::{ProviderWait, Unreached};

use crate::event::Failure;
use crate::reported::Reported;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// Why an attempt failed, as stored on the job and shown to clients.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobError {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The cause, the place and the next step, in one or two sentences; free of secrets.
    pub message: String,
    /// True if this failure may be tried again; usually [`FailureKind::retryable`].
    pub retryable: bool,
    /// The wait that the other side requested, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Facts for programs: ids, limits, rule names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Box<Map<String, Value>>,
    /// The words of the worker that reported it, when it is not our own error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Box<Reported>>,
    /// The underlying error, if there is one: its code and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<str>>,
    /// The contact that decides about it or is notified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Box<Escalation>>,
}

/// The member of an error's details that [`JobError::of_an_outage`] sets.
const OUTAGE: &str = "outage";
/// The member of an error's details that [`JobError::of_a_hold`] sets.
const HOLD: &str = "hold";

impl JobError {
    /// Returns an error of this kind with the kind's own answer to "may it be tried again?".
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retryable: kind.retryable(),
            retry_after_ms: None,
            details: Box::default(),
            reported: None,
            cause: None,
            escalation: None,
        }
    }

    /// Returns true if anything but a change of the job can still make it succeed: another attempt, or a
    /// person.
    #[must_use]
    pub fn recoverable(&self) -> bool {
        self.retryable || self.kind.recoverable() && !self.kind.retryable()
    }

    /// Returns true if it counts against the retry policy: as its kind does, with two exceptions. A budget
    /// may have room for the call after the reservations of calls under way end. A call may have been held
    /// back and never made.
    #[must_use]
    pub fn costs_a_retry(&self) -> bool {
        self.kind.costs_a_retry() && !self.is_of_reservations() && !self.says(HOLD)
    }

    /// Returns true if it counts among the failures of the job's own work; those of an outage are counted
    /// apart.
    #[must_use]
    pub fn counts_as_failure(&self) -> bool {
        self.costs_a_retry() && !self.is_of_an_outage()
    }

    /// Returns true if a budget refused a call that would fit without the reservations of other calls.
    #[must_use]
    pub fn is_of_reservations(&self) -> bool {
        let number = |key: &str| self.details.get(key).and_then(Value::as_i64);
        let room =
            number("limit").zip(number("settled")).map(|(limit, settled)| limit.saturating_sub(settled));
        self.kind == FailureKind::TokenBudget
            && number("needed").zip(room).is_some_and(|(needed, room)| needed <= room)
    }

    /// Returns true if operators have to look at it, because no reviewer could be asked.
    #[must_use]
    pub fn alerts(&self) -> bool {
        self.escalation.as_ref().is_some_and(|escalation| escalation.to == EscalationType::Alert)
    }

    /// Returns the facts for programs: the class of an agent's failure, the OJS type, recoverable or not,
    /// the requested wait, the underlying error, and the contact.
    #[must_use]
    pub fn facts(&self) -> Map<String, Value> {
        let Value::Object(mut facts) = json!(self.event_data()) else { return Map::new() };
        ["code", "message", "type"].iter().for_each(|name| drop(facts.shift_remove(*name)));
        facts
    }

    /// Returns the error in the form of event data: code, message and type, and the [`facts`](Self::facts).
    #[must_use]
    pub fn event_data(&self) -> Failure {
        let is_agents = self.reported.is_none() && self.kind.is_agents();
        Failure {
            code: self.code().to_owned(),
            message: Some(self.message.clone()),
            error_type: self.error_type().to_owned(),
            ossa_code: is_agents.then(|| self.kind.class().as_str().to_owned()),
            recoverable: self.recoverable(),
            retry_after_ms: self.retry_after_ms,
            cause: self.cause.as_deref().map(str::to_owned),
            escalation: self.escalation.as_deref().cloned(),
        }
    }

    /// Returns the code of the error on the wire.
    #[must_use]
    pub fn code(&self) -> &str {
        self.reported.as_ref().map_or(self.kind.code(), |reported| &reported.code)
    }

    /// Returns the `type` of the OJS error record.
    #[must_use]
    pub fn error_type(&self) -> &str {
        self.reported.as_ref().map_or(self.kind.ojs_type(), |reported| &reported.error_type)
    }

    /// Returns the names that `non_retryable_errors` may list for it (OJS retry §5).
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let Some(reported) = &self.reported else {
            let class = self.kind.is_agents().then(|| self.kind.class().as_str());
            return [self.kind.ojs_type(), self.kind.code()].into_iter().chain(class).collect();
        };
        let named = (!reported.guessed).then_some(reported.error_type.as_str());
        let class = self.details.get("error_class").and_then(Value::as_str);
        [Some(reported.code.as_str()), named, class].into_iter().flatten().collect()
    }

    /// Marks the error as final: no further attempt can end differently.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { retryable: false, ..self }
    }

    /// Adds a fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Marks the error as an outage: the model's provider was away or busy. The work itself is not at fault,
    /// and a job without a retry policy waits until the outage is over.
    #[must_use]
    pub fn of_an_outage(self) -> Self {
        self.with(OUTAGE, true)
    }

    /// Counts the error among the failures of the job's own work, as a job that states its retry policy asks.
    #[must_use]
    pub fn of_the_work(mut self) -> Self {
        self.details.remove(OUTAGE);
        self
    }

    /// Returns true if [`JobError::of_an_outage`] marked it.
    #[must_use]
    pub fn is_of_an_outage(&self) -> bool {
        self.says(OUTAGE)
    }

    /// Marks the error as a hold: the model's provider asked for a pause, and no request was sent. So nothing
    /// has failed.
    #[must_use]
    pub fn of_a_hold(self) -> Self {
        self.with(HOLD, true)
    }

    /// Returns true if this process marked it so; errors reported by other workers have their own words.
    fn says(&self, fact: &str) -> bool {
        self.reported.is_none() && self.details.get(fact).is_some_and(|said| *said == Value::Bool(true))
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string().into());
        self
    }

    /// Adds the contact that decides about it or is notified.
    #[must_use]
    pub fn escalated(mut self, escalation: Escalation) -> Self {
        self.escalation = Some(Box::new(escalation));
        self
    }

    /// Adds the wait that the other side requested.
    #[must_use]
    pub fn retry_after(mut self, ms: Option<u64>) -> Self {
        self.retry_after_ms = ms;
        self
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message)
    }
}

impl std::error::Error for JobError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_reservations_keep_from_fitting_costs_no_retry() {
        let short = |needed: i64, settled: i64| {
            let error = JobError::new(FailureKind::TokenBudget, "spent");
            error.with("limit", 100).with("settled", settled).with("needed", needed)
        };
        assert!(!short(60, 40).costs_a_retry(), "it fits when the others are done");
        assert!(short(61, 40).costs_a_retry(), "it never fits");
        assert!(JobError::new(FailureKind::TokenBudget, "spent").costs_a_retry());
        assert!(JobError::new(FailureKind::Tool, "no").with("limit", 9).with("needed", 1).costs_a_retry());
        assert!(!JobError::new(FailureKind::CircuitOpen, "no").costs_a_retry());
        let busy = || JobError::new(FailureKind::RateLimited, "busy");
        assert!(busy().counts_as_failure() && busy().of_an_outage().costs_a_retry());
        assert!(!busy().of_an_outage().counts_as_failure() && !busy().of_a_hold().costs_a_retry());
    }
}
