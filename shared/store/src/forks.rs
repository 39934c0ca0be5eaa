//! Engagements that go on from a turn of another one, whose past they share.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::fork::{ForkChanges, ForkPoint, Origin};
use turnstone_domain::{EngagementId, JobId, Phase, Timestamp};

/// A fork that is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct NewFork {
    /// The engagement that it comes from.
    pub from: EngagementId,
    /// Only an engagement of this tenant is found; `None` finds everybody's.
    pub tenant: Option<String>,
    /// Where they part.
    pub point: ForkPoint,
    /// What it does otherwise.
    pub changes: ForkChanges,
    /// Whether its tools are called; otherwise recorded outcomes stand for them.
    pub live_tools: bool,
    /// The id of its engagement.
    pub engagement: EngagementId,
    /// The id of its job.
    pub job: JobId,
    /// Now.
    pub at: Timestamp,
}

/// Why there is no fork.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ForkRefusal {
    /// There is no such engagement.
    NoEngagement,
    /// The engagement had several inputs; a fork has one job for its whole past.
    SeveralInputs,
    /// The engagement has not come as far as this turn.
    NoTurn {
        /// The newest turn that it can be forked at.
        newest: i64,
    },
    /// The turn has not come as far as this phase.
    NoPhase {
        /// The furthest phase of this turn that it can be forked at.
        furthest: Phase,
    },
    /// It has no call of this id whose outcome is known.
    NoCall(String),
    /// The call was made before the point where they part.
    CallBefore {
        /// The call.
        call: String,
        /// Its turn.
        turn: i64,
    },
    /// A model's provider was named, and the agent names no model.
    NoModel,
}

/// Engagements that go on from a turn of another one, whose past they share.
#[async_trait]
pub trait Forks: Send + Sync + 'static {
    /// Makes a fork: an engagement and a job of its own, with a budget of its own, which goes on from the point with what was
    /// changed. The other engagement stays as it is.
    async fn fork(&self, fork: NewFork) -> Result<Result<(), ForkRefusal>, StoreError>;

    /// Where the engagement of a job was forked from; `None` for one that is no fork.
    async fn origin(&self, job: &JobId) -> Result<Option<Origin>, StoreError>;
}
