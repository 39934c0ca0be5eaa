//! Rows of workflows and their steps, and what is to be written of them.

use crate::engine::columns::Columns;
use crate::engine::journal::Journal;
use crate::engine::rows::{StepMove, StepRow, WorkflowRow, decode};
use crate::engine::session::{Args, Session};
use crate::engine::statement::{Writes, decode_readable};
use crate::engine::unit::Unit;
use crate::{Ring, StoreError, Workflow, sql};
use std::collections::BTreeMap;
use turnstone_domain::event::{EventBody, WorkflowChange};
use turnstone_domain::ids::shown;
use turnstone_domain::workflow::{StepState, WorkflowState};
use turnstone_domain::{NewEvent, Timestamp};

impl WorkflowRow {
    /// The queues of its jobs, if they are known.
    pub(super) fn queues(&self) -> Option<Vec<String>> {
        self.queues.clone().filter(|queues| !queues.is_empty())
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == WorkflowState::Running
    }
}

impl From<WorkflowRow> for Workflow {
    fn from(row: WorkflowRow) -> Self {
        Self {
            id: row.id,
            tenant: row.tenant,
            kind: row.kind,
            name: row.name,
            state: row.state,
            members: row.members,
            ended: row.ended,
            succeeded: row.succeeded,
            created_at: row.created_at,
            ended_at: row.ended_at,
        }
    }
}

impl StepRow {
    pub(super) fn key(&self) -> (i64, i64) {
        (self.workflow_seq, self.step)
    }
}

/// Workflows that are locked, and what is to be written.
#[derive(Default)]
pub(super) struct Board {
    rows: BTreeMap<i64, WorkflowRow>,
    states: Vec<StepMove>,
    journal: Journal,
    /// Those that ended here.
    pub over: Vec<i64>,
}

impl Board {
    /// Locks workflows. One that cannot be read stays as it is, and its steps start nothing.
    pub(super) async fn lock(session: &mut Session, seqs: Vec<i64>) -> Result<Self, StoreError> {
        let keys: Vec<i64> = seqs.into_iter().collect();
        let (action, text) = ("lock workflows", &sql::LOCK_WORKFLOWS);
        let rows = session.rows(action, text, Args::Rows(Columns::of(keys, text)?, &[])).await?;
        let rows = decode_readable(action, &rows, decode::<WorkflowRow>);
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

    /// The step has this state now.
    pub(super) fn put(&mut self, (workflow_seq, step): (i64, i64), state: StepState) {
        self.states.push(StepMove { workflow_seq, step, state });
    }

    /// A member has ended.
    pub(super) fn count(&mut self, seq: i64, succeeded: bool) {
        if let Some(row) = self.rows.get_mut(&seq) {
            row.ended += 1;
            row.succeeded += i64::from(succeeded);
        }
    }

    /// Ends a workflow that runs.
    pub(super) fn end(&mut self, seq: i64, state: WorkflowState, at: Timestamp) {
        let Some(row) = self.rows.get_mut(&seq).filter(|row| row.is_running()) else { return };
        (row.state, row.ended_at) = (state, Some(at));
        self.over.push(seq);
        let failed = state == WorkflowState::Failed;
        let change = WorkflowChange {
            workflow_id: shown(&row.id).to_owned(),
            kind: row.kind,
            name: row.name.clone(),
            succeeded: failed.then_some(row.succeeded),
            steps: failed.then_some(row.members),
            queues: row.queues(),
        };
        let body = match state {
            WorkflowState::Running => return,
            WorkflowState::Completed => EventBody::WorkflowCompleted(change),
            WorkflowState::Cancelled => EventBody::WorkflowCancelled(change),
            WorkflowState::Failed => EventBody::WorkflowFailed(change),
        };
        self.note(seq, &body, at);
    }

    /// Appends an event to the workflow's stream.
    pub(super) fn note(&mut self, seq: i64, body: &EventBody, at: Timestamp) {
        let Some(row) = self.rows.get_mut(&seq) else { return };
        row.events += 1;
        let event = NewEvent::of(body, 0, at);
        self.journal.event(seq, row.events, seq, &event);
    }

    /// Writes everything; what waits in a workflow that ended never starts.
    pub(super) async fn flush(mut self, session: &mut Session, unit: &mut Unit) -> Result<(), StoreError> {
        let rows: Vec<&WorkflowRow> = self.rows.values().collect();
        let mut writes = Writes::default();
        writes.all_kept("write workflows", &sql::UPDATE_WORKFLOWS, &rows);
        writes.all("write steps", &sql::UPDATE_WORKFLOW_STEPS, self.states);
        self.journal.flush(session, &mut writes)?;
        writes.run(session).await?;
        for seq in self.over {
            let values = [seq.into()];
            session.execute("skip steps", &sql::UPDATE_SKIPPED_WORKFLOW_STEPS, Args::Values(&values)).await?;
        }
        let hints = self.rows.into_values().map(|row| Ring::Events(row.id));
        unit.rings.extend(hints);
        Ok(())
    }
}
