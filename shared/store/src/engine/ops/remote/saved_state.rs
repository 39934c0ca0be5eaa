//! Saved states: what a worker keeps of its own progress for the next attempt (OJS durable execution §4).

use super::is_stale;
use crate::engine::rows::{SavedStateRow, get};
use crate::engine::session::{Args, Session};
use crate::engine::statement::read_by;
use crate::engine::unit::Unit;
use crate::{LeasedJob, RemoteOutcome, StoreError, sql};
use turnstone_domain::Timestamp;
use turnstone_domain::event::{EventBody, Saved};
use turnstone_domain::job::SavedState;

/// Saves a state over the last one, in every state of the job that is not terminal.
pub(in crate::engine) async fn save(
    session: &mut Session,
    unit: &mut Unit,
    about: &LeasedJob,
    state: &str,
    at: Timestamp,
) -> Result<RemoteOutcome<SavedState>, StoreError> {
    let Some(seq) = unit.read_job(session, &about.job, about.tenant.as_deref()).await? else {
        return Ok(RemoteOutcome::NotFound);
    };
    if let Some(job) = unit.job(seq).filter(|job| job.state.is_terminal()) {
        return Ok(RemoteOutcome::WrongState(job.state));
    }
    if unit.job(seq).is_some_and(|job| is_stale(job, about.token.as_deref())) {
        return Ok(RemoteOutcome::StaleLease);
    }
    let saved = put(session, unit, seq, state, at).await?;
    unit.flush(session).await?;
    Ok(RemoteOutcome::Done(saved))
}

/// Saves a state of a job that was taken in.
pub(super) async fn put(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    state: &str,
    at: Timestamp,
) -> Result<SavedState, StoreError> {
    let row = SavedStateRow { job_seq: seq, state: state.to_owned(), at };
    let (action, text) = ("save a state", &sql::INSERT_SAVED_STATE);
    let sequence = read_by(session, action, text, vec![row], |row| get(row, "sequence")).await?;
    let sequence = sequence.last().copied().unwrap_or(1);
    unit.note(seq, EventBody::JobCheckpointed(Saved { sequence }), at)?;
    Ok(SavedState { state: state.to_owned(), sequence, at })
}

/// Forgets the saved state, if there is one.
pub(in crate::engine) async fn forget(
    session: &mut Session,
    unit: &mut Unit,
    about: &LeasedJob,
) -> Result<RemoteOutcome<()>, StoreError> {
    let Some(seq) = unit.read_job(session, &about.job, about.tenant.as_deref()).await? else {
        return Ok(RemoteOutcome::NotFound);
    };
    if unit.job(seq).is_some_and(|job| is_stale(job, about.token.as_deref())) {
        return Ok(RemoteOutcome::StaleLease);
    }
    let values = [seq.into()];
    session.execute("forget a state", &sql::DELETE_SAVED_STATE, Args::Values(&values)).await?;
    Ok(RemoteOutcome::Done(()))
}
