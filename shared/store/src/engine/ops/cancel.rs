//! Cancel: any state that is not terminal `→ cancelled`.

use super::super::rows::JobRow;
use super::super::session::Session;
use super::super::statement::read_by;
use super::super::unit::Unit;
use super::{delegations, reviews};
use crate::{CancelOutcome, Ring, StoreError, sql};
use turnstone_domain::event::{Ended, EventBody};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobId, JobState, Timestamp};

/// Cancels a job. An active one loses its lease, and its worker is notified. Its delegates end with it.
pub(in super::super) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    id: &JobId,
    tenant: Option<&str>,
    at: Timestamp,
) -> Result<CancelOutcome, StoreError> {
    delegations::lock_tree(session, &[id.clone(), JobId::chosen(id.as_str(), tenant)]).await?;
    let Some(seq) = unit.read_job(session, id, tenant).await? else { return Ok(CancelOutcome::NotFound) };
    let previous = unit.change_job(seq)?.state;
    if previous.is_terminal() {
        return Ok(CancelOutcome::AlreadyEnded(previous));
    }
    end(session, unit, seq, at).await?;
    unit.flush(session).await?;
    Ok(CancelOutcome::Cancelled { previous })
}

/// Cancels those of these jobs that have not ended, in one go.
pub(in super::super) async fn all(
    session: &mut Session,
    unit: &mut Unit,
    ids: Vec<JobId>,
    at: Timestamp,
) -> Result<(), StoreError> {
    delegations::lock_tree(session, &ids).await?;
    let keys = ids.into_iter().collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    let live = rows.iter().filter(|job| !job.state.is_terminal()).map(|job| job.seq).collect::<Vec<_>>();
    unit.take_in(session, rows).await?;
    for seq in live {
        end(session, unit, seq, at).await?;
    }
    unit.flush(session).await
}

/// Cancels a job that was taken in and has not ended; the caller flushes the unit.
pub(in super::super) async fn end(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let previous = unit.change_job(seq)?.state;
    if previous == JobState::Pending {
        reviews::close(session, seq, at).await?;
    }
    unit.give_back(seq)?;
    let token = unit.change_job(seq)?.lease_token.take();
    unit.change_job(seq)?.step(Trigger::Cancel, at)?;
    unit.note(seq, EventBody::JobCancelled(Ended { previous_state: previous }), at)?;
    unit.rings.extend(token.map(Ring::Revoked));
    Ok(())
}
