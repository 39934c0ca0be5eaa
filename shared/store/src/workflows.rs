//! Chains, groups, batches and graphs: jobs that wait for one another.

use crate::{Page, StoreError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use turnstone_domain::{JobId, JobState, NewJob, Timestamp};

/// How the jobs of a workflow depend on one another (OJS workflows §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
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

    /// The word on the wire and in the database.
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

    /// Whether the first failure ends the workflow. In a group or a batch the members are independent.
    #[must_use]
    pub fn fails_at_once(self) -> bool {
        matches!(self, Self::Chain | Self::Graph)
    }
}

/// Where a workflow stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowState {
    /// It goes on.
    Running,
    /// Every member succeeded.
    Completed,
    /// A member did not.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

impl WorkflowState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Running, Self::Completed, Self::Failed, Self::Cancelled];

    /// The word on the wire and in the database.
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

/// What a step is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRole {
    /// It is what the workflow is about.
    Member,
    /// Enqueued when all members of a batch have ended.
    OnComplete,
    /// The same, when all succeeded.
    OnSuccess,
    /// The same, when one did not.
    OnFailure,
}

impl StepRole {
    const ALL: [Self; 4] = [Self::Member, Self::OnComplete, Self::OnSuccess, Self::OnFailure];

    /// The word on the wire and in the database.
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

/// Where a step stands.
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
    const ALL: [Self; 5] = [Self::Waiting, Self::Enqueued, Self::Succeeded, Self::Failed, Self::Skipped];

    /// The word on the wire and in the database.
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

/// A job as it waits for its turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WaitingJob {
    /// The job, as if it were enqueued when the workflow is made.
    pub job: NewJob,
    /// Whether its delay counts from the time at which it is enqueued.
    pub run_relative: bool,
    /// Whether its `expires_at` does.
    pub expiry_relative: bool,
}

/// A step of a new workflow.
#[derive(Clone, PartialEq, Debug)]
pub struct NewStep {
    /// How the client calls it.
    pub name: Option<String>,
    /// What it is for.
    pub role: StepRole,
    /// Positions of the steps that have to succeed before, in the order in which it gets their results.
    pub needs: Vec<usize>,
    /// Its job.
    pub waiting: WaitingJob,
}

/// A workflow to be made. Its needs have no cycle.
#[derive(Clone, PartialEq, Debug)]
pub struct NewWorkflow {
    /// UUIDv7.
    pub id: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// How its jobs depend on one another.
    pub kind: WorkflowKind,
    /// How the client calls it.
    pub name: Option<String>,
    /// Members first, in order, then callbacks.
    pub steps: Vec<NewStep>,
    /// Now.
    pub created_at: Timestamp,
}

/// A workflow as stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Workflow {
    /// UUIDv7.
    pub id: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// How its jobs depend on one another.
    pub kind: WorkflowKind,
    /// How the client calls it.
    pub name: Option<String>,
    /// Where it stands.
    pub state: WorkflowState,
    /// How many members it has; callbacks do not count.
    pub members: i64,
    /// How many of them have ended.
    pub ended: i64,
    /// How many of them succeeded.
    pub succeeded: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A step as stored.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkflowStep {
    /// How the client calls it.
    pub name: Option<String>,
    /// What it is for.
    pub role: StepRole,
    /// Positions of the steps whose results it gets.
    pub needs: Vec<usize>,
    /// Where it stands.
    pub state: StepState,
    /// Its job, enqueued or not.
    pub job_id: JobId,
    /// The type of its job.
    pub job_type: String,
    /// Where its job stands, once it is enqueued and until it is pruned.
    pub job_state: Option<JobState>,
}

/// Which workflows.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct WorkflowFilter {
    /// Of this tenant; `None` is everybody's.
    pub tenant: Option<String>,
    /// In this state.
    pub state: Option<WorkflowState>,
}

/// What became of the cancellation of a workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkflowCancel {
    /// It is `cancelled` now.
    Cancelled,
    /// It had ended already; nothing changed.
    AlreadyEnded(WorkflowState),
    /// There is no such workflow.
    NotFound,
}

/// Chains, groups, batches and graphs: jobs that wait for one another (OJS workflows §3 to §6).
///
/// What waits is enqueued in the transaction that ends the last job it needs, whatever ends it.
#[async_trait]
pub trait Workflows: Send + Sync + 'static {
    /// Makes a workflow and enqueues the jobs that wait for nothing: all of it or nothing.
    ///
    /// # Errors
    /// [`StoreError::DuplicateWorkflow`]; and as [`crate::Intake::push`], for the ids of all steps and for the jobs that
    /// are enqueued at once.
    async fn create(&self, workflow: NewWorkflow) -> Result<(), StoreError>;

    /// `running → cancelled`: what waits never starts, what has not begun is cancelled, what is active may end.
    async fn cancel(
        &self,
        id: &str,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<WorkflowCancel, StoreError>;

    /// One workflow with its steps.
    async fn workflow(
        &self,
        id: &str,
        tenant: Option<&str>,
    ) -> Result<Option<(Workflow, Vec<WorkflowStep>)>, StoreError>;

    /// Workflows, newest first, and how many match in total.
    async fn workflows(
        &self,
        filter: &WorkflowFilter,
        page: Page,
    ) -> Result<(Vec<Workflow>, u64), StoreError>;
}
