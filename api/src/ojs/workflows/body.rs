//! A workflow in responses.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_domain::JobState;
use turnstone_domain::ids::shown;
use turnstone_domain::workflow::{StepRole, WorkflowKind, WorkflowState};
use turnstone_ojs::{OjsError, OpenValue};
use turnstone_store::{Workflow, WorkflowStep};
use utoipa::ToSchema;

/// A workflow. Chains and graphs count their `steps`, groups and batches their `jobs`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkflowBody {
    /// UUIDv7.
    pub id: String,
    /// chain, group, batch or graph.
    #[serde(rename = "type")]
    #[schema(example = "chain")]
    pub kind: String,
    /// The client's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// running, completed, failed or cancelled.
    #[schema(example = "running")]
    pub state: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_at: Option<String>,
    /// Of a chain or a graph: its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_total: Option<i64>,
    /// How many succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_completed: Option<i64>,
    /// Of a group or a batch: its jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs_total: Option<i64>,
    /// How many succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs_completed: Option<i64>,
    /// Members that ended in another way.
    failed: i64,
    /// The steps of a chain or a graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepBody>>,
    /// The jobs of a group or a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<StepBody>>,
    /// The callbacks of a batch, enqueued when its members have ended: on_complete, on_success, on_failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callbacks: Option<BTreeMap<String, StepBody>>,
}

/// A member of a workflow, or a callback.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct StepBody {
    /// How the client calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its job.
    pub job_id: String,
    /// The type of its job.
    #[serde(rename = "type")]
    pub job_type: String,
    /// waiting, enqueued, succeeded, failed or skipped.
    pub state: String,
    /// The state of its job, once it is enqueued.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub job_state: Option<OpenValue<JobState>>,
    /// The steps it waits for, by their ids, or by their positions when they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<Vec<String>>,
}

/// A workflow, and the same in `workflow` for clients that expect a wrapper.
#[derive(Serialize, ToSchema)]
pub(crate) struct WorkflowReply {
    /// The workflow.
    pub workflow: WorkflowBody,
    #[serde(flatten)]
    flat: WorkflowBody,
}

impl WorkflowReply {
    pub(super) fn of(workflow: &Workflow, steps: &[WorkflowStep]) -> Self {
        let flat = WorkflowBody::of(workflow).with(workflow.kind, steps);
        Self { workflow: flat.clone(), flat }
    }
}

impl WorkflowBody {
    /// Without its steps.
    pub(super) fn of(workflow: &Workflow) -> Self {
        let ended = |state: WorkflowState| {
            workflow.ended_at.filter(|_| workflow.state == state).map(|at| at.to_rfc3339())
        };
        let counts =
            |counted: bool| (counted.then_some(workflow.members), counted.then_some(workflow.succeeded));
        let (steps_total, steps_completed) = counts(workflow.kind.fails_at_once());
        let (jobs_total, jobs_completed) = counts(!workflow.kind.fails_at_once());
        Self {
            id: shown(&workflow.id).to_owned(),
            kind: workflow.kind.as_str().to_owned(),
            name: workflow.name.clone(),
            state: workflow.state.as_str().to_owned(),
            created_at: workflow.created_at.to_rfc3339(),
            completed_at: ended(WorkflowState::Completed),
            failed_at: ended(WorkflowState::Failed),
            cancelled_at: ended(WorkflowState::Cancelled),
            steps_total,
            steps_completed,
            jobs_total,
            jobs_completed,
            failed: workflow.ended - workflow.succeeded,
            steps: None,
            jobs: None,
            callbacks: None,
        }
    }

    fn with(mut self, kind: WorkflowKind, steps: &[WorkflowStep]) -> Self {
        let members = steps.iter().filter(|step| step.role == StepRole::Member);
        let members = Some(members.map(|step| StepBody::of(step, steps)).collect());
        if kind.fails_at_once() {
            self.steps = members;
        } else {
            self.jobs = members;
        }
        if kind == WorkflowKind::Batch {
            let callbacks = steps.iter().filter(|step| step.role != StepRole::Member);
            self.callbacks = Some(
                callbacks.map(|step| (step.role.as_str().to_owned(), StepBody::of(step, &[]))).collect(),
            );
        }
        self
    }
}

impl StepBody {
    fn of(step: &WorkflowStep, all: &[WorkflowStep]) -> Self {
        let name = |at: &usize| {
            let name = all.get(*at).and_then(|step| step.name.clone());
            name.unwrap_or_else(|| at.to_string())
        };
        let member = step.role == StepRole::Member && !step.needs.is_empty();
        Self {
            id: step.name.clone(),
            job_id: step.job_id.to_string(),
            job_type: step.job_type.clone(),
            state: step.state.as_str().to_owned(),
            job_state: step.job_state.map(OpenValue::from),
            depends_on: member.then(|| step.needs.iter().map(name).collect()),
        }
    }
}

/// 404 for a workflow that does not exist, or is another tenant's.
pub(super) fn missing(id: &str) -> OjsError {
    OjsError::not_found("workflow", shown(id))
}
