//! The end of a lease.

use crate::agent::delegation::DelegationMode;
use crate::budget::BudgetWait;
use crate::question::AskedUser;
use crate::review::NewReview;
use crate::{AgentDefinition, CallId, EngagementId, JobError, JobId, RawJson, RawObject, Timestamp};

/// The end of a lease. Each variant is one edge of the transition table out of `active`.
#[derive(Clone, PartialEq, Debug)]
pub enum Settlement {
    /// `active → completed` with the job's result.
    Complete {
        /// The job's `result` (OJS core §3).
        result: RawJson,
        /// True if no event contains the result: a delegate of an agent whose answer has to pass a guardrail (OAS-43).
        withheld: bool,
    },
    /// `active → retryable`: the failure counts against the retry policy.
    Retry {
        /// The reason of the failure.
        error: JobError,
        /// When it becomes available again.
        run_at: Timestamp,
        /// The delay that was chosen, in milliseconds (`retry_delay_ms` on the wire).
        delay_ms: i64,
    },
    /// `active → discarded`: there is no further attempt.
    Discard {
        /// Why it failed.
        error: JobError,
    },
    /// `active → pending` until the event that it waits for.
    Park {
        /// The event that it waits for.
        wait: Wait,
    },
    /// `active → available`, no failure: the worker drains, or the job is paused.
    Yield,
    /// `active → available`, no failure: something more urgent waits for the slot.
    GiveWay,
}

/// The event that a parked job waits for.
#[derive(Clone, PartialEq, Debug)]
pub enum Wait {
    /// The decision of this review.
    Review(NewReview),
    /// The decisions of these new reviews, and of those of its turn that are open.
    Reviews(Vec<NewReview>),
    /// A raise of the budget, or its next period.
    Raise(BudgetWait),
    /// The answer of its user.
    Input(AskedUser),
    /// The end of every delegate of its turn: these new ones, and those that are under way.
    Children(Vec<NewChild>),
}

/// A new engagement that works for a call of its parent. It inherits type, queue, priority, tenant, user, times, retry
/// policy, and the shared budget from the parent. Its depth is the parent's plus one.
#[derive(Clone, PartialEq, Debug)]
pub struct NewChild {
    /// The id of its job.
    pub job: JobId,
    /// Its id.
    pub engagement: EngagementId,
    /// The agent, as it is now.
    pub agent: Box<AgentDefinition>,
    /// The call that it answers.
    pub call_id: CallId,
    /// The parent's turn.
    pub turn: i64,
    /// The mode: supervisor, parallel or handoff.
    pub mode: DelegationMode,
    /// OJS `args`: its input.
    pub args: RawJson,
    /// OJS `meta`.
    pub meta: RawObject,
    /// The longest it may take, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The jobs for which it counts in its tree: 1 for a delegate. The first flow of a parallel node counts for all flows
    /// of the node, and the others for none.
    pub jobs: u32,
    /// The most jobs that the tree may have then. A child that does not fit does not start, nor do those behind it.
    pub max_jobs_per_tree: u32,
    /// The review that the delegate answers; it is in the inbox meanwhile.
    pub review: Option<Box<NewReview>>,
}

impl Settlement {
    /// Returns the edge of the transition table that this settlement takes.
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
