//! Chains, groups, batches and graphs: jobs that wait for one another: the calls.

use super::Engine;
use super::columns::Columns;
use super::ops::workflows::{Answer as Done, Request as Asked, WorkflowRow};
use super::rows::{Fields, Inconsistency, JobRow, get, json, maybe, word};
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::{
    NewWorkflow, Page, StoreError, Workflow, WorkflowCancel, WorkflowFilter, WorkflowStep, Workflows, sql,
};
use async_trait::async_trait;
use turnstone_domain::workflow::{StepRole, StepState};
use turnstone_domain::{JobId, JobState, RawJson, Timestamp};

fn step(row: &impl Fields) -> Result<WorkflowStep, Inconsistency> {
    let job_state = maybe::<&str>(row, "job_state")?;
    Ok(WorkflowStep {
        name: maybe(row, "name")?,
        role: word(row, "role", StepRole::parse)?,
        needs: json(row, "needs")?,
        state: word(row, "state", StepState::parse)?,
        job_id: JobId(get(row, "job_id")?),
        job_type: get(row, "job_type")?,
        job_state: job_state.map(|_| word(row, "job_state", JobState::parse)).transpose()?,
    })
}

/// What a step of a workflow gets beside what its client sent.
#[derive(Default)]
pub(super) struct StepInput {
    pub workflow_id: Option<String>,
    pub parent_results: Option<Vec<String>>,
}

impl StepInput {
    /// With the number of its job.
    pub(super) fn decode(row: &impl Fields) -> Result<(i64, Self), Inconsistency> {
        let results = maybe::<&str>(row, "parent_results")?;
        let results = results.map(|_| json::<Vec<RawJson>>(row, "parent_results")).transpose()?;
        let parent_results = results.map(|results| results.into_iter().map(RawJson::into_text).collect());
        Ok((get(row, "seq")?, Self { workflow_id: Some(get(row, "id")?), parent_results }))
    }
}

impl<R: Reader> Engine<R> {
    /// What a job gets from its workflow, if it is a step of one.
    pub(super) async fn step_input(&self, job: &JobRow) -> Result<StepInput, StoreError> {
        if job.workflow.is_none() {
            return Ok(StepInput::default());
        }
        let keys = Args::Rows(Columns::of(vec![(job.seq,)]), &[]);
        let rows = self.readers.read("read a step", &sql::SELECT_WORKFLOW_INPUTS, keys).await?;
        let input = decode_all(&rows, StepInput::decode)?.pop();
        Ok(input.map(|(_, input)| input).unwrap_or_default())
    }
}

#[async_trait]
impl<R: Reader> Workflows for Engine<R> {
    async fn create(&self, workflow: NewWorkflow) -> Result<(), StoreError> {
        match self.request(Request::Workflows(Asked::Create(Box::new(workflow)))).await? {
            Answer::Workflows(Done::Created(created)) => created,
            _ => Err(StoreError::Closed),
        }
    }

    async fn cancel(
        &self,
        id: &str,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<WorkflowCancel, StoreError> {
        let asked = Asked::Cancel { id: id.to_owned(), tenant: tenant.map(str::to_owned), at };
        match self.request(Request::Workflows(asked)).await? {
            Answer::Workflows(Done::Cancelled(outcome)) => Ok(outcome),
            _ => Err(StoreError::Closed),
        }
    }

    async fn workflow(
        &self,
        id: &str,
        tenant: Option<&str>,
    ) -> Result<Option<(Workflow, Vec<WorkflowStep>)>, StoreError> {
        let values = [id.into(), tenant.into()];
        let rows =
            self.readers.read("read a workflow", &sql::SELECT_WORKFLOW_BY_ID, Args::Values(&values)).await?;
        let Some(row) = decode_all(&rows, WorkflowRow::decode)?.pop() else { return Ok(None) };
        let values = [row.seq.into()];
        let steps =
            self.readers.read("read steps", &sql::SELECT_WORKFLOW_STEPS, Args::Values(&values)).await?;
        Ok(Some((row.workflow, decode_all(&steps, step)?)))
    }

    async fn workflows(
        &self,
        filter: &WorkflowFilter,
        page: Page,
    ) -> Result<(Vec<Workflow>, u64), StoreError> {
        let (tenant, state) = (filter.tenant.as_deref(), filter.state.map(|state| state.as_str()));
        let values = [tenant.into(), state.into()];
        let counted =
            self.readers.read("count workflows", &sql::SELECT_WORKFLOW_COUNT, Args::Values(&values));
        let total =
            decode_all(&counted.await?, |row| get::<i64>(row, "workflows"))?.pop().unwrap_or_default();
        let values = [tenant.into(), state.into(), page.limit.into(), page.offset.into()];
        let rows = self.readers.read("list workflows", &sql::SELECT_WORKFLOWS, Args::Values(&values)).await?;
        let found = decode_all(&rows, WorkflowRow::decode)?;
        Ok((found.into_iter().map(|row| row.workflow).collect(), total.unsigned_abs()))
    }
}
