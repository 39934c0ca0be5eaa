//! `running → cancelled`: what waits never starts, what has not begun is cancelled, what is active may end.

use super::super::cancel;
use super::rows::Board;
use crate::engine::rows::{JobRow, WorkflowRow, decode, get};
use crate::engine::session::Session;
use crate::engine::statement::{read, read_by};
use crate::engine::unit::Unit;
use crate::{StoreError, WorkflowCancel, sql};
use turnstone_domain::workflow::WorkflowState;
use turnstone_domain::{JobId, JobState, Timestamp};

/// Cancels a workflow of the tenant.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    id: &str,
    tenant: Option<&str>,
    at: Timestamp,
) -> Result<WorkflowCancel, StoreError> {
    let (action, values) = ("look for a workflow", [id.into(), tenant.into()]);
    let found =
        read(session, action, &sql::SELECT_WORKFLOW_BY_ID, &values, decode::<WorkflowRow>).await?.pop();
    let Some(WorkflowRow { seq, state, .. }) = found else { return Ok(WorkflowCancel::NotFound) };
    if state != WorkflowState::Running {
        return Ok(WorkflowCancel::AlreadyEnded(state));
    }
    // Jobs before their workflow: every process that ends a job locks them in this order. Then the jobs enqueued
    // meanwhile.
    let mut open = take_open(session, unit, seq).await?;
    let mut board = Board::lock(session, vec![seq]).await?;
    match board.get(seq).map(|row| row.state) {
        Some(WorkflowState::Running) => {}
        Some(state) => return Ok(WorkflowCancel::AlreadyEnded(state)),
        None => return Ok(WorkflowCancel::NotFound),
    }
    open.extend(take_open(session, unit, seq).await?);
    open.sort_unstable();
    open.dedup();
    for job in open {
        cancel::end(session, unit, job, at).await?;
    }
    unit.flush(session).await?;
    board.end(seq, WorkflowState::Cancelled, at);
    board.flush(session, unit).await?;
    Ok(WorkflowCancel::Cancelled)
}

/// Takes in the jobs of the workflow that no worker has begun.
async fn take_open(session: &mut Session, unit: &mut Unit, seq: i64) -> Result<Vec<i64>, StoreError> {
    let values = [seq.into()];
    let open =
        read(session, "look for jobs of a workflow", &sql::SELECT_OPEN_WORKFLOW_JOBS, &values, |row| {
            get::<JobId>(row, "id")
        })
        .await?;
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, open, JobRow::decode).await?;
    let idle = |job: &&JobRow| !job.state.is_terminal() && job.state != JobState::Active;
    let seqs = rows.iter().filter(idle).map(|job| job.seq).collect();
    unit.take_in(session, rows).await?;
    Ok(seqs)
}
