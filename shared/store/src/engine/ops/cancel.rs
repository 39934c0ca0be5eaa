//! Cancel: any state that is not terminal `→ cancelled`.

use super::super::rows::JobRow;
use super::super::session::Session;
use super::super::statement::read_by;
use super::super::unit::Unit;
use super::decide;
use crate::{CancelOutcome, Ring, StoreError, sql};
use serde_json::json;
use turnstone_domain::state::Trigger;
use turnstone_domain::{EventName, JobId, JobState, Timestamp};

/// Cancels a job; an active one loses its lease, and its worker is told.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    id: &JobId,
    at: Timestamp,
) -> Result<CancelOutcome, StoreError> {
    let rows =
        read_by(session, "read a job", &sql::JOBS_TO_CHANGE, vec![(id.clone(),)], JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    let Some(seq) = unit.seq_of(id) else { return Ok(CancelOutcome::NotFound) };
    let job = unit.change_job(seq)?;
    let previous = job.state;
    if previous.is_terminal() {
        return Ok(CancelOutcome::AlreadyEnded(previous));
    }
    if previous == JobState::Pending {
        decide::close(session, seq, at).await?;
    }
    unit.give_back(seq)?;
    let token = unit.change_job(seq)?.lease_token.take();
    unit.change_job(seq)?.step(Trigger::Cancel, at)?;
    unit.note(seq, EventName::JobCancelled, json!({"previous_state": previous}), at)?;
    unit.rings.extend(token.map(Ring::Revoked));
    unit.flush(session).await?;
    Ok(CancelOutcome::Cancelled { previous })
}
