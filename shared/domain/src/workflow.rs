//! Workflows: chains, groups, batches and graphs of jobs (OJS workflows §3).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the jobs of a workflow depend on one another (OJS workflows §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowKind {
    /// One after the other.
    Chain,
    /// All at once.
    Group,
    /// All at once, and then the callbacks.
    Batch,
    /// Each as soon as those that it needs have succeeded.
    Graph,
}

impl WorkflowKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Chain, Self::Group, Self::Batch, Self::Graph];

    /// Returns the word on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Group => "group",
            Self::Batch => "batch",
            Self::Graph => "graph",
        }
    }

    /// Reads a kind; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns true if the first failure ends the workflow. In a group or a batch the members are independent.
    #[must_use]
    pub fn fails_at_once(self) -> bool {
        matches!(self, Self::Chain | Self::Graph)
    }
}

/// The state of a workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowState {
    /// It runs.
    Running,
    /// Every member succeeded.
    Completed,
    /// A member did not.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl WorkflowState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Running, Self::Completed, Self::Failed, Self::Cancelled];

    /// Returns the word on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads a state; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// The role of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRole {
    /// A member of the workflow itself.
    Member,
    /// Enqueued when all members of a batch have ended.
    OnComplete,
    /// The same, when all succeeded.
    OnSuccess,
    /// The same, when one did not.
    OnFailure,
}

impl StepRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Member, Self::OnComplete, Self::OnSuccess, Self::OnFailure];

    /// Returns the word on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::OnComplete => "on_complete",
            Self::OnSuccess => "on_success",
            Self::OnFailure => "on_failure",
        }
    }

    /// Reads a role; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// The state of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// Its job is not enqueued yet.
    Waiting,
    /// Its job is enqueued and has not ended.
    Enqueued,
    /// Its job is completed.
    Succeeded,
    /// Its job ended in another way, or could not be enqueued.
    Failed,
    /// Its job is never enqueued, because the workflow has ended.
    Skipped,
}

impl StepState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Enqueued, Self::Succeeded, Self::Failed, Self::Skipped];

    /// Returns the word on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Enqueued => "enqueued",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Reads a state; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}
