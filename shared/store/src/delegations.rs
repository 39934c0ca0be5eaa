//! Agents that work for agents: who for whom.

use crate::StoreError;
use async_trait::async_trait;
use serde::Serialize;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::{CallId, EngagementId, JobId, JobState};

/// Where a job stands in the tree of those who work for one another.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kindred {
    /// How many stand above it.
    pub depth: i64,
    /// For whom it works: job and engagement.
    pub parent: Option<(JobId, EngagementId)>,
    /// Those who work for it, or for one of these, parents before their children.
    pub below: Vec<Kin>,
}

/// One who works for another.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Kin {
    /// Its job.
    pub job_id: JobId,
    /// Its engagement.
    pub engagement_id: EngagementId,
    /// Its agent.
    pub agent: String,
    /// The job that it works for.
    pub parent_job_id: JobId,
    /// The call that it answers; none for one that was pushed from outside.
    pub call_id: Option<CallId>,
    /// On which terms.
    pub mode: DelegationMode,
    /// What became of it for its parent.
    pub status: DelegationState,
    /// Where its job stands.
    pub state: JobState,
    /// How many stand above it.
    pub depth: i64,
    /// Its complete turns.
    pub turns: i64,
    /// What it has spent itself.
    pub tokens_used: i64,
}

/// Agents that work for agents.
#[async_trait]
pub trait Delegations: Send + Sync + 'static {
    /// Where a job stands; at most `most` of those below it.
    async fn kindred(&self, job: &JobId, most: u32) -> Result<Kindred, StoreError>;
}
