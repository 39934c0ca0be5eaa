//! The eight job states of OJS and the closed table of transitions between them (OJS core §5). `docs/STATES.md` draws it.
//!
//! The store moves a job only along [`TRANSITIONS`]. To add an edge, add a [`Trigger`], a line of the table, and the page.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A job's state (OJS core §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It waits for its time.
    Scheduled,
    /// It waits for a worker.
    Available,
    /// It waits for an event: a plain job for its activation, the job of an agent for a review, its user, delegates or a budget.
    Pending,
    /// A worker holds its lease.
    Active,
    /// It succeeded.
    Completed,
    /// It failed, and waits for its next attempt.
    Retryable,
    /// It was ended on request.
    Cancelled,
    /// It failed for good, or its `expires_at` passed.
    Discarded,
}

/// The causes of state changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trigger {
    /// The time of a scheduled job has come.
    Promote,
    /// A worker takes the job and gets its lease.
    Claim,
    /// The job completed.
    Complete,
    /// The attempt failed, and another one follows.
    Retry,
    /// The attempt failed, and no other one follows.
    Discard,
    /// A client or an operator requested the end of the job.
    Cancel,
    /// The worker gives the job back, because it drains, the job is paused, or a more urgent job waits. It is no failure.
    Yield,
    /// The lease expired before the worker settled the job.
    LeaseExpired,
    /// The retry delay has passed.
    RetryDue,
    /// The event that a pending job waits for has happened.
    Activate,
    /// The job of an agent waits for a review, the user, a tool of the client, delegates or a budget. OJS has no such edge.
    Park,
    /// The job's `expires_at` has passed (OJS core §3: any non-terminal state).
    Expire,
    /// An operator retries a discarded job; its attempts are counted from 1 again (OJS dead letter §4).
    Revive,
    /// The limit that the job names is used up, and its `on_limit` is `reschedule` (OJS rate limiting §5).
    Reschedule,
    /// The limit that the job names is used up, and its `on_limit` is `drop` (OJS rate limiting §5).
    Drop,
}

impl JobState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Scheduled,
        Self::Available,
        Self::Pending,
        Self::Active,
        Self::Completed,
        Self::Retryable,
        Self::Cancelled,
        Self::Discarded,
    ];

    /// Returns the name of the state, as the API and the database have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Available => "available",
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Completed => "completed",
            Self::Retryable => "retryable",
            Self::Cancelled => "cancelled",
            Self::Discarded => "discarded",
        }
    }

    /// Parses the name of a state; `None` for an unknown one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Returns true if the job has ended. Only one edge leads out of such a state: an operator may revive a `discarded` job.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Discarded)
    }

    /// Returns the state after `trigger`; `None` when the table has no such edge, so that the change is refused.
    #[must_use]
    pub fn after(self, trigger: Trigger) -> Option<Self> {
        TRANSITIONS.iter().find(|(from, by, _)| *from == self && *by == trigger).map(|(_, _, to)| *to)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The transitions: from a state, by a trigger, to a state. No other change of a state exists. A test compares the table with
/// `docs/STATES.md`.
pub const TRANSITIONS: &[(JobState, Trigger, JobState)] = {
    use JobState as S;
    use Trigger as T;
    &[
        (S::Scheduled, T::Promote, S::Available),
        (S::Scheduled, T::Cancel, S::Cancelled),
        (S::Scheduled, T::Expire, S::Discarded),
        (S::Available, T::Claim, S::Active),
        (S::Available, T::Cancel, S::Cancelled),
        (S::Available, T::Expire, S::Discarded),
        (S::Available, T::Reschedule, S::Scheduled),
        (S::Available, T::Drop, S::Discarded),
        (S::Pending, T::Activate, S::Available),
        (S::Pending, T::Cancel, S::Cancelled),
        (S::Pending, T::Expire, S::Discarded),
        (S::Active, T::Complete, S::Completed),
        (S::Active, T::Retry, S::Retryable),
        (S::Active, T::Discard, S::Discarded),
        (S::Active, T::Cancel, S::Cancelled),
        (S::Active, T::Yield, S::Available),
        (S::Active, T::LeaseExpired, S::Available),
        (S::Active, T::Park, S::Pending),
        (S::Active, T::Expire, S::Discarded),
        (S::Retryable, T::RetryDue, S::Available),
        (S::Retryable, T::Cancel, S::Cancelled),
        (S::Retryable, T::Expire, S::Discarded),
        (S::Discarded, T::Revive, S::Available),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_an_operator_leads_out_of_a_terminal_state() {
        for state in JobState::ALL {
            let leaves = TRANSITIONS.iter().any(|(from, by, _)| *from == state && *by != Trigger::Revive);
            assert_eq!(leaves, !state.is_terminal(), "{state}");
        }
    }

    #[test]
    fn a_trigger_leads_to_one_state_only() {
        for (at, (from, by, _)) in TRANSITIONS.iter().enumerate() {
            let first = TRANSITIONS.iter().position(|(f, b, _)| f == from && b == by);
            assert_eq!(first, Some(at), "{from} has two edges for {by:?}");
        }
    }

    #[test]
    fn words_round_trip() {
        for state in JobState::ALL {
            assert_eq!(JobState::parse(state.as_str()), Some(state));
        }
        assert_eq!(JobState::parse("done"), None);
    }
}
