//! Making a workflow: its rows, and the jobs that wait for nothing, in one transaction.

use super::super::push::{self, Look, PushEntry};
use super::rows::Board;
use crate::engine::rows::{NewStepRow, Stored, WorkflowRow, decode};
use crate::engine::session::Session;
use crate::engine::statement::{Writes, as_json, execute, read};
use crate::engine::unit::Unit;
use crate::sql;
use crate::{NewStep, NewWorkflow, StoreError};
use std::collections::BTreeSet;
use turnstone_domain::event::{EventBody, WorkflowChange};
use turnstone_domain::ids::shown;
use turnstone_domain::workflow::{StepRole, StepState, WorkflowState};

/// Makes it, or says why not and writes nothing.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    new: &NewWorkflow,
) -> Result<Result<(), StoreError>, StoreError> {
    if is_taken(session, new).await? {
        return Ok(Err(StoreError::DuplicateWorkflow(new.id.clone())));
    }
    // Steps that begin later take their ids now, and a number only then.
    let jobs: Vec<_> = new.steps.iter().map(|step| &step.waiting.job).collect();
    let mut look = Look::take(session, &jobs, 1).await?;
    let mut ids = look.taken.clone();
    if let Some(job) = jobs.iter().find(|job| !ids.insert(job.id.0.clone())) {
        return Ok(Err(StoreError::DuplicateJob(job.id.clone())));
    }
    let ready: Vec<usize> = (0..new.steps.len()).filter(|at| starts_at_once(&new.steps[*at])).collect();
    // The last one: on SQLite a number is free for others until it is used.
    let Some(seq) = look.numbers.pop() else { return Err(StoreError::Closed) };
    // First of all: a concurrent creation of the same id waits here, and is refused.
    let Some(workflow) = insert(session, new, seq).await? else {
        return Ok(Err(StoreError::DuplicateWorkflow(new.id.clone())));
    };
    let entry = |at: &usize| PushEntry {
        job: &new.steps[*at].waiting.job,
        step: Some((seq, position(*at))),
        delegation: None,
        continues: None,
    };
    let entries = vec![ready.iter().map(entry).collect::<Vec<_>>()];
    if let Some(Err(refused)) = push::enqueue(session, unit, look, &entries).await?.pop() {
        execute(session, "take a workflow back", &sql::DELETE_WORKFLOWS, vec![seq], &[]).await?;
        return Ok(Err(refused));
    }
    write(session, unit, new, seq, workflow).await?;
    Ok(Ok(()))
}

/// Returns true when a workflow has this id.
async fn is_taken(session: &mut Session, new: &NewWorkflow) -> Result<bool, StoreError> {
    let (action, values) = ("look for a workflow", [shown(&new.id).into(), new.tenant.as_deref().into()]);
    Ok(!read(session, action, &sql::SELECT_WORKFLOW_BY_ID, &values, decode::<WorkflowRow>).await?.is_empty())
}

fn starts_at_once(step: &NewStep) -> bool {
    step.role == StepRole::Member && step.needs.is_empty()
}

fn position(at: usize) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// Returns the queues of its jobs, callbacks included, each once.
fn queues(new: &NewWorkflow) -> Vec<String> {
    let queues: BTreeSet<&str> = new.steps.iter().map(|step| step.waiting.job.queue.as_str()).collect();
    queues.into_iter().map(str::to_owned).collect()
}

/// Writes the workflow's row; `None` when another one has its id.
async fn insert(
    session: &mut Session,
    new: &NewWorkflow,
    seq: i64,
) -> Result<Option<WorkflowRow>, StoreError> {
    let members = new.steps.iter().filter(|step| step.role == StepRole::Member).count();
    let row = WorkflowRow {
        seq,
        id: new.id.clone(),
        tenant: new.tenant.clone(),
        kind: new.kind,
        name: new.name.clone(),
        state: WorkflowState::Running,
        members: position(members),
        ended: 0,
        succeeded: 0,
        events: 0,
        created_at: new.created_at,
        ended_at: None,
        queues: Some(queues(new)),
    };
    let text = &WorkflowRow::table().inserts.missing;
    let written = execute(session, "write a workflow", text, vec![row.clone()], &[]).await?;
    Ok((written > 0).then_some(row))
}

/// Writes its steps, and its event.
async fn write(
    session: &mut Session,
    unit: &mut Unit,
    new: &NewWorkflow,
    seq: i64,
    workflow: WorkflowRow,
) -> Result<(), StoreError> {
    let mut writes = Writes::default();
    writes.insert("write steps", steps(new, seq)?);
    writes.run(session).await?;
    let started = WorkflowChange {
        workflow_id: shown(&new.id).to_owned(),
        kind: new.kind,
        name: new.name.clone(),
        succeeded: None,
        steps: Some(workflow.members),
        queues: workflow.queues(),
    };
    let mut board = Board::of(workflow);
    board.note(seq, &EventBody::WorkflowStarted(started), new.created_at);
    board.flush(session, unit).await
}

fn steps(new: &NewWorkflow, seq: i64) -> Result<Vec<NewStepRow>, StoreError> {
    let mut next = vec![Vec::new(); new.steps.len()];
    for (at, step) in new.steps.iter().enumerate().filter(|(_, step)| step.role == StepRole::Member) {
        for need in &step.needs {
            next[*need].push(at);
        }
    }
    let row = |(at, step): (usize, &NewStep)| {
        let state = if starts_at_once(step) { StepState::Enqueued } else { StepState::Waiting };
        let job = &step.waiting.job;
        Ok(NewStepRow {
            workflow_seq: seq,
            step: position(at),
            name: step.name.clone(),
            role: step.role,
            needs: as_json(&step.needs)?,
            next: as_json(&next[at])?,
            waits: position(step.needs.len()),
            state,
            job_id: job.id.clone(),
            job_type: job.job_type.clone(),
            job: as_json(&step.waiting)?,
        })
    };
    new.steps.iter().enumerate().map(row).collect()
}
