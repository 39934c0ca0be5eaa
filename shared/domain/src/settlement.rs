//! How a lease ends.

use crate::budget::BudgetWait;
use crate::review::NewReview;
use crate::{JobError, RawJson, Timestamp};

/// The end of a lease. Each variant is one edge of the transition table out of `active`.
#[derive(Clone, PartialEq, Debug)]
pub enum Settlement {
    /// `active → completed` with the job's result.
    Complete {
        /// The job's `result` (OJS core §3).
        result: RawJson,
    },
    /// `active → retryable`: the failure counts against the retry policy.
    Retry {
        /// Why it failed.
        error: JobError,
        /// When it becomes available again.
        run_at: Timestamp,
        /// The delay that was chosen, in milliseconds (`retry_delay_ms` on the wire).
        delay_ms: i64,
    },
    /// `active → discarded`: no further attempt.
    Discard {
        /// Why it failed.
        error: JobError,
    },
    /// `active → pending` until what it waits for has happened.
    Park {
        /// What it waits for.
        wait: Wait,
    },
    /// `active → available`, no failure: the worker drains, or the job is paused.
    Yield,
    /// `active → available`, no failure: something more urgent waits for the slot.
    GiveWay,
}

/// What a parked job waits for.
#[derive(Clone, PartialEq, Debug)]
pub enum Wait {
    /// Until somebody decides this review.
    Review(NewReview),
    /// Until the budget is raised, or begins anew.
    Raise(BudgetWait),
}

impl Settlement {
    /// The edge of the transition table that this settlement takes.
    #[must_use]
    pub fn trigger(&self) -> crate::state::Trigger {
        use crate::state::Trigger;
        match self {
            Self::Complete { .. } => Trigger::Complete,
            Self::Retry { .. } => Trigger::Retry,
            Self::Discard { .. } => Trigger::Discard,
            Self::Park { .. } => Trigger::Park,
            Self::Yield | Self::GiveWay => Trigger::Yield,
        }
    }
}
