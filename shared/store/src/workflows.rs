//! Chains, groups, batches and graphs: jobs that wait for one another.

use crate::{Page, StoreError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{JobId, JobState, NewJob, Timestamp};

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
