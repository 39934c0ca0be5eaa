//! How a lease ends.

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
        /// Whether no event tells it: what works for an agent whose answer has to pass a guardrail says nothing aloud (OAS-43).
        withheld: bool,
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
    /// Until its user answers.
    Input(AskedUser),
    /// Until every job that works for a call of its turn has ended: these, which are enqueued with it, and those that
    /// are under way.
    Children(Vec<NewChild>),
}

/// An engagement that is to work for a call of its parent. Whatever is not said here it has from its parent: type,
/// queue, priority, tenant, user, times, retry policy, and the budget that both share. Its depth is the parent's and one.
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
    /// On which terms.
    pub mode: DelegationMode,
    /// OJS `args`: its input.
    pub args: RawJson,
    /// OJS `meta`.
    pub meta: RawObject,
    /// The longest it may take, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The review that it is to answer, which stands in the inbox meanwhile.
    pub review: Option<Box<NewReview>>,
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
