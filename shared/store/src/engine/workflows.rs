//! Chains, groups, batches and graphs: jobs that wait for one another.

use super::Engine;
use super::ids::refuse_several;
use super::ops::workflows as ops;
use super::rows::{Fields, Inconsistency, JobRow, WorkflowRow, decode, get, json};
use super::session::{Arg, Args};
use super::statement::decode_all;
use super::views::{all, by_seqs, many};
use crate::sql::{self, Text};
use crate::{Page, StoreError};
use async_recursion::async_recursion as boxed;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use turnstone_domain::ids::shown;
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{JobId, JobState, NewJob, RawJson, Timestamp};

/// A job as it waits for its turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WaitingJob {
    /// The job, as if it were enqueued when the workflow is made.
    pub job: NewJob,
    /// True when its delay counts from the time at which it is enqueued.
    pub run_relative: bool,
    /// True when its `expires_at` counts from the time at which it is enqueued.
    pub expiry_relative: bool,
}

/// A step of a new workflow.
#[derive(Clone, PartialEq, Debug)]
pub struct NewStep {
    /// How the client calls it.
    pub name: Option<String>,
    /// Its role in the workflow.
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
    /// Its state.
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
    /// Its role in the workflow.
    pub role: StepRole,
    /// Positions of the steps whose results it gets.
    pub needs: Vec<usize>,
    /// Its state.
    pub state: StepState,
    /// Its job, enqueued or not.
    pub job_id: JobId,
    /// The type of its job.
    pub job_type: String,
    /// The state of its job, once it is enqueued and until it is pruned.
    pub job_state: Option<JobState>,
}

/// Which workflows.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct WorkflowFilter {
    /// Workflows of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// In this state.
    pub state: Option<WorkflowState>,
    /// The workflow that they follow.
    pub after: Option<String>,
}

/// The outcome of the cancellation of a workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkflowCancel {
    /// It is `cancelled` now.
    Cancelled,
    /// It had ended already; nothing changed.
    AlreadyEnded(WorkflowState),
    /// There is no such workflow.
    NotFound,
}

fn step(row: &impl Fields) -> Result<WorkflowStep, Inconsistency> {
    let job_state = get::<Option<&str>>(row, "job_state")?;
    Ok(WorkflowStep {
        name: get(row, "name")?,
        role: get::<StepRole>(row, "role")?,
        needs: json(row, "needs")?,
        state: get::<StepState>(row, "state")?,
        job_id: JobId(get(row, "job_id")?),
        job_type: get(row, "job_type")?,
        job_state: job_state.map(|_| get::<JobState>(row, "job_state")).transpose()?,
    })
}

/// The inputs of a workflow's step beside what its client sent.
#[derive(Default)]
pub(super) struct StepInput {
    pub workflow_id: Option<String>,
    pub parent_results: Option<Vec<String>>,
}

impl StepInput {
    /// With the number of its job.
    pub(super) fn decode(row: &impl Fields) -> Result<(i64, Self), Inconsistency> {
        let results = get::<Option<&str>>(row, "parent_results")?;
        let results = results.map(|_| json::<Vec<RawJson>>(row, "parent_results")).transpose()?;
        let parent_results = results.map(|results| results.into_iter().map(RawJson::into_text).collect());
        Ok((
            get(row, "job_seq")?,
            Self { workflow_id: Some(shown(get(row, "id")?).to_owned()), parent_results },
        ))
    }
}

impl Engine {
    /// Returns the inputs that a job gets from its workflow, if it is a step of one.
    pub(super) async fn step_input(&self, job: &JobRow) -> Result<StepInput, StoreError> {
        if job.workflow.is_none() {
            return Ok(StepInput::default());
        }
        let (action, text) = ("read a step", &sql::SELECT_WORKFLOW_INPUTS);
        let input = by_seqs(&self.readers, action, text, &[job.seq], StepInput::decode).await?.pop();
        Ok(input.map(|(_, input)| input).unwrap_or_default())
    }
}
/// Chains, groups, batches and graphs: jobs that wait for one another (OJS workflows §3 to §6).
///
/// What waits is enqueued in the transaction that ends the last job it needs, whatever ends it.
#[derive(Clone)]
pub struct Workflows(pub(super) Arc<Engine>);

impl Workflows {
    /// Makes a workflow and enqueues the jobs that wait for nothing: all of it or nothing.
    ///
    /// # Errors
    /// [`StoreError::DuplicateWorkflow`]; and as [`crate::Intake::push`], for the ids of all steps and for the jobs that
    /// are enqueued at once.
    #[boxed]
    pub async fn create(&self, workflow: NewWorkflow) -> Result<(), StoreError> {
        self.0.write(workflow, |tx, new| Box::pin(ops::create(&mut tx.session, &mut tx.unit, new))).await?
    }

    /// `running → cancelled`: what waits never starts, what has not begun is cancelled, what is active may end.
    #[boxed]
    pub async fn cancel(
        &self,
        id: &str,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<WorkflowCancel, StoreError> {
        self.0
            .write((id.to_owned(), tenant.map(str::to_owned), at), |tx, (id, tenant, at)| {
                Box::pin(ops::cancel(&mut tx.session, &mut tx.unit, id, tenant.as_deref(), *at))
            })
            .await
    }

    /// The workflow with this id that a client sent for this tenant, or for any tenant with `None`, and its steps.
    ///
    /// # Errors
    /// [`StoreError::AmbiguousId`] when several tenants have a workflow with this id.
    #[boxed]
    pub async fn workflow(
        &self,
        id: &str,
        tenant: Option<&str>,
    ) -> Result<Option<(Workflow, Vec<WorkflowStep>)>, StoreError> {
        let values = [id.into(), tenant.into()];
        match tenant {
            Some(_) => self.read_with_steps(&sql::SELECT_WORKFLOW_BY_ID, &values).await,
            None => self.read_with_steps(&sql::SELECT_WORKFLOWS_OF_ANY_TENANT, &values[..1]).await,
        }
    }

    /// The workflow with this unique id, and its steps: the one that a request has just created.
    #[boxed]
    pub async fn workflow_by_unique_id(
        &self,
        id: &str,
    ) -> Result<Option<(Workflow, Vec<WorkflowStep>)>, StoreError> {
        self.read_with_steps(&sql::SELECT_WORKFLOW_BY_ID, &[id.into(), None.into()]).await
    }

    async fn read_with_steps(
        &self,
        text: &'static Text,
        values: &[Arg<'_>],
    ) -> Result<Option<(Workflow, Vec<WorkflowStep>)>, StoreError> {
        let found = all(&self.0.readers, "read a workflow", text, values, decode::<WorkflowRow>).await?;
        refuse_several(found.iter().map(|row| (row.id.as_str(), row.tenant.as_deref())))?;
        let Some(row) = found.into_iter().next() else { return Ok(None) };
        let values = [row.seq.into()];
        let steps =
            self.0.readers.read("read steps", &sql::SELECT_WORKFLOW_STEPS, Args::Values(&values)).await?;
        Ok(Some((row.into(), decode_all(&steps, step)?)))
    }

    /// Workflows, newest first, and how many match in total.
    #[boxed]
    pub async fn workflows(
        &self,
        filter: &WorkflowFilter,
        page: Page,
    ) -> Result<(Vec<Workflow>, u64), StoreError> {
        let (tenant, state) = (filter.tenant.as_deref(), filter.state.map(|state| state.as_str()));
        let values = [tenant.into(), state.into()];
        let counted =
            self.0.readers.read("count workflows", &sql::SELECT_WORKFLOW_COUNT, Args::Values(&values));
        let total =
            decode_all(&counted.await?, |row| get::<i64>(row, "workflows"))?.pop().unwrap_or_default();
        let after = filter.after.as_deref().into();
        let values = [tenant.into(), state.into(), page.limit.into(), page.offset.into(), after];
        let (action, text) = ("list workflows", &sql::SELECT_WORKFLOWS);
        let found = many(&self.0.readers, action, text, &values, decode::<WorkflowRow>).await?;
        Ok((found.into_iter().map(Workflow::from).collect(), total.unsigned_abs()))
    }
}
