//! Progress: how far an active job is (OJS progress §3). Telling it renews the reservation.

use super::{is_stale, saved_state};
use crate::engine::rows::ProgressRow;
use crate::engine::session::Session;
use crate::engine::statement::execute;
use crate::engine::unit::Unit;
use crate::{DEFAULT_VISIBILITY_MS, LeasedJob, NewProgress, RemoteOutcome, StoreError, sql};
use turnstone_domain::{JobState, Timestamp};

/// Records the progress. A job that is not active does not change.
pub(in crate::engine) async fn tell(
    session: &mut Session,
    unit: &mut Unit,
    about: &LeasedJob,
    progress: &NewProgress,
    at: Timestamp,
) -> Result<RemoteOutcome<()>, StoreError> {
    let Some(seq) = unit.read_job(session, &about.job, about.tenant.as_deref()).await? else {
        return Ok(RemoteOutcome::NotFound);
    };
    if unit.job(seq).is_some_and(|job| is_stale(job, about.token.as_deref())) {
        return Ok(RemoteOutcome::StaleLease);
    }
    let job = unit.change_job(seq)?;
    if job.state != JobState::Active || job.engagement_seq.is_some() {
        return Ok(RemoteOutcome::Done(()));
    }
    job.lease_expires_at = Some(at.plus_ms(job.lease_ms.unwrap_or(DEFAULT_VISIBILITY_MS)));
    let claimed_at = job.claimed_at.unwrap_or(at);
    let row = ProgressRow {
        job_seq: seq,
        millionths: progress.millionths.clamp(0, 1_000_000),
        message: progress.message.clone(),
        data: progress.data.clone(),
        at,
    };
    execute(session, "record progress", &sql::INSERT_PROGRESS, vec![row], &[claimed_at.0.into()]).await?;
    if let Some(state) = &progress.state {
        saved_state::put(session, unit, seq, state, at).await?;
    }
    unit.flush(session).await?;
    Ok(RemoteOutcome::Done(()))
}
