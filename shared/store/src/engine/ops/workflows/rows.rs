//! Rows of workflows and their steps, and what is to be written of them.

use super::super::super::journal::Journal;
use super::super::super::rows::{Fields, Inconsistency, get, json, json_or_none, maybe, time, word};
use super::super::super::session::{Args, Session};
use super::super::super::statement::{Writes, read_by};
use super::super::super::unit::Unit;
use crate::{Ring, StoreError, Workflow, sql};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnstone_domain::feed::QUEUES;
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{EventName, NewEvent, Timestamp};

/// A workflow with its numbers.
#[derive(Clone, Debug)]
pub(in super::super::super) struct WorkflowRow {
    pub seq: i64,
    pub workflow: Workflow,
    events: i64,
    /// The queues of its jobs, sorted.
    queues: Vec<String>,
}

impl WorkflowRow {
    pub(in super::super::super) fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Ok(Self {
            seq: get(row, "seq")?,
            workflow: Workflow {
                id: get(row, "id")?,
                tenant: maybe(row, "tenant")?,
                kind: word(row, "kind", WorkflowKind::parse)?,
                name: maybe(row, "name")?,
                state: word(row, "state", WorkflowState::parse)?,
                members: get(row, "members")?,
                ended: get(row, "ended")?,
                succeeded: get(row, "succeeded")?,
                created_at: time(row, "created_at")?,
                ended_at: maybe::<i64>(row, "ended_at")?.map(Timestamp),
            },
            events: get(row, "events")?,
            queues: json_or_none(row, "queues")?.unwrap_or_default(),
        })
    }

    /// One that is just being made.
    pub(super) fn new(seq: i64, workflow: Workflow, queues: Vec<String>) -> Self {
        Self { seq, workflow, events: 0, queues }
    }

    pub(super) fn is_running(&self) -> bool {
        self.workflow.state == WorkflowState::Running
    }
}

/// A step. `job` is empty where it is not needed.
pub(super) struct StepRow {
    pub workflow_seq: i64,
    pub step: i64,
    pub role: StepRole,
    pub state: StepState,
    pub needs: Vec<i64>,
    pub next: Vec<i64>,
    pub job: String,
}

impl StepRow {
    pub(super) fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Ok(Self {
            workflow_seq: get(row, "workflow_seq")?,
            step: get(row, "step")?,
            role: word(row, "role", StepRole::parse)?,
            state: word(row, "state", StepState::parse)?,
            needs: json(row, "needs")?,
            next: json(row, "next")?,
            job: get(row, "job")?,
        })
    }

    pub(super) fn key(&self) -> (i64, i64) {
        (self.workflow_seq, self.step)
    }
}

/// Workflows that are locked, and what is to be written.
#[derive(Default)]
pub(super) struct Board {
    rows: BTreeMap<i64, WorkflowRow>,
    states: Vec<(i64, i64, &'static str)>,
    journal: Journal,
    /// Those that ended here.
    pub over: Vec<i64>,
}

impl Board {
    /// Locks workflows.
    pub(super) async fn lock(session: &mut Session, seqs: Vec<i64>) -> Result<Self, StoreError> {
        let keys = seqs.into_iter().map(|seq| (seq,)).collect();
        let (action, text) = ("lock workflows", &sql::LOCK_WORKFLOWS);
        let rows = read_by(session, action, text, keys, WorkflowRow::decode).await?;
        Ok(Self { rows: rows.into_iter().map(|row| (row.seq, row)).collect(), ..Self::default() })
    }

    /// One workflow that is just being made.
    pub(super) fn of(row: WorkflowRow) -> Self {
        Self { rows: BTreeMap::from([(row.seq, row)]), ..Self::default() }
    }

    pub(super) fn get(&self, seq: i64) -> Option<&WorkflowRow> {
        self.rows.get(&seq)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &WorkflowRow> {
        self.rows.values()
    }

    /// A step stands there now.
    pub(super) fn put(&mut self, (workflow_seq, step): (i64, i64), state: StepState) {
        self.states.push((workflow_seq, step, state.as_str()));
    }

    /// A member has ended.
    pub(super) fn count(&mut self, seq: i64, succeeded: bool) {
        if let Some(row) = self.rows.get_mut(&seq) {
            row.workflow.ended += 1;
            row.workflow.succeeded += i64::from(succeeded);
        }
    }

    /// Ends a workflow that runs.
    pub(super) fn end(&mut self, seq: i64, state: WorkflowState, at: Timestamp) {
        let Some(row) = self.rows.get_mut(&seq).filter(|row| row.is_running()) else { return };
        (row.workflow.state, row.workflow.ended_at) = (state, Some(at));
        self.over.push(seq);
        let told = &row.workflow;
        let mut data = json!({"workflow_id": told.id, "type": told.kind, "name": told.name});
        let name = match state {
            WorkflowState::Running => return,
            WorkflowState::Completed => EventName::WorkflowCompleted,
            WorkflowState::Cancelled => EventName::WorkflowCancelled,
            WorkflowState::Failed => {
                data["succeeded"] = told.succeeded.into();
                data["steps"] = told.members.into();
                EventName::WorkflowFailed
            }
        };
        self.note(seq, name, data, at);
    }

    /// Appends an event to the workflow's stream, with the queues of its jobs.
    pub(super) fn note(&mut self, seq: i64, name: EventName, mut data: Value, at: Timestamp) {
        let Some(row) = self.rows.get_mut(&seq) else { return };
        row.events += 1;
        if !row.queues.is_empty() {
            data[QUEUES] = row.queues.as_slice().into();
        }
        let event = NewEvent { name, turn: 0, data: data.into(), at };
        self.journal.event(seq, row.events, seq, &event);
    }

    /// Writes everything; what waits in a workflow that ended never starts.
    pub(super) async fn flush(mut self, session: &mut Session, unit: &mut Unit) -> Result<(), StoreError> {
        let changes = |row: &WorkflowRow| {
            let told = &row.workflow;
            (row.seq, told.state.as_str(), told.ended, told.succeeded, row.events, told.ended_at)
        };
        let mut writes = Writes::default();
        writes.all("write workflows", &sql::UPDATE_WORKFLOWS, self.rows.values().map(changes).collect());
        writes.all("write steps", &sql::UPDATE_WORKFLOW_STEPS, self.states);
        self.journal.flush(&mut writes)?;
        writes.run(session).await?;
        for seq in self.over {
            let values = [seq.into()];
            session.execute("skip steps", &sql::UPDATE_SKIPPED_WORKFLOW_STEPS, Args::Values(&values)).await?;
        }
        let bells = self.rows.into_values().map(|row| Ring::Events(row.workflow.id));
        unit.rings.extend(bells);
        Ok(())
    }
}
