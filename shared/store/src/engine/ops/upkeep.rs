//! What time does to jobs and reviews.

use super::super::rows::{self, JobRow};
use super::super::session::{Arg, Session, limit as row_limit};
use super::super::statement::read;
use super::super::unit::Unit;
use super::decide;
use crate::sql::{self, Text};
use crate::{Ring, StoreError};
use serde_json::json;
use turnstone_domain::error::FailureKind;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::state::Trigger;
use turnstone_domain::{EventName, JobError, JobState, Timestamp};

/// Leases that may run out in a row without a checkpoint before the job is given up: it kills its workers.
const MAX_LAPSES: i64 = 20;

async fn rows_until<S: Session>(
    session: &mut S,
    action: &'static str,
    text: &Text,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<JobRow>, StoreError> {
    read(session, action, text, &[until.0.into(), row_limit(limit).into()], JobRow::decode).await
}

/// `scheduled → available` and `retryable → available`.
pub(in super::super) async fn promote_due<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let rows = rows_until(session, "promote due jobs", &sql::JOBS_DUE, now, limit).await?;
    promote(session, unit, rows, now).await
}

/// The same for what a claim may take: what is due is available, whether the scheduler has come to it or not. `wanted`
/// are kind, queue, limit and now.
pub(in super::super) async fn promote_for_claim<S: Session>(
    session: &mut S,
    rings: &mut Vec<Ring>,
    wanted: &[Arg<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows = read(session, "promote due jobs", &sql::JOBS_DUE_IN_QUEUE, wanted, JobRow::decode).await?;
    let mut unit = Unit::default();
    promote(session, &mut unit, rows, now).await?;
    rings.append(&mut unit.rings);
    Ok(())
}

async fn promote<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    rows: Vec<JobRow>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let due: Vec<(i64, JobState)> = rows.iter().map(|job| (job.seq, job.state)).collect();
    unit.take_in(session, rows).await?;
    for (seq, state) in &due {
        let (trigger, reason) = match state {
            JobState::Scheduled => (Trigger::Promote, "scheduled"),
            _ => (Trigger::RetryDue, "retry"),
        };
        unit.change_job(*seq)?.step(trigger, now)?;
        unit.note(*seq, EventName::JobAvailable, json!({"reason": reason}), now)?;
        unit.rings.push(Ring::Available);
    }
    unit.flush(session).await?;
    Ok(due.len())
}

/// `active → available` for leases that ended before `until`.
pub(in super::super) async fn reap<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    until: Timestamp,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let rows = rows_until(session, "reap expired leases", &sql::JOBS_LAPSED, until, limit).await?;
    let seqs: Vec<i64> = rows.iter().map(|job| job.seq).collect();
    unit.take_in(session, rows).await?;
    for seq in &seqs {
        unit.give_back(*seq)?;
        let job = unit.change_job(*seq)?;
        let (worker, token) = (job.worker_id.clone(), job.lease_token.clone());
        job.lapses += 1;
        let lapses = job.lapses;
        unit.note(*seq, EventName::LeaseExpired, json!({"worker_id": worker}), now)?;
        if lapses >= MAX_LAPSES {
            let message = format!(
                "{lapses} workers in a row lost this job before they could commit anything; it may be killing them. \
                 Look at the workers' logs, then enqueue it again"
            );
            let error = JobError::new(FailureKind::Internal, message);
            let job = unit.change_job(*seq)?;
            job.step(Trigger::Discard, now)?;
            job.failures += 1;
            unit.error(*seq, &error, now)?;
            let data = json!({"code": error.kind.code(), "message": error.message});
            unit.note(*seq, EventName::JobDiscarded, data, now)?;
        } else {
            unit.change_job(*seq)?.step(Trigger::LeaseExpired, now)?;
            unit.rings.push(Ring::Available);
        }
        unit.rings.extend(token.map(Ring::Revoked));
    }
    unit.flush(session).await?;
    Ok(seqs.len())
}

/// Any state that is not terminal `→ discarded` for jobs whose `expires_at` has passed.
pub(in super::super) async fn expire_jobs<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let rows = rows_until(session, "expire jobs", &sql::JOBS_EXPIRING, now, limit).await?;
    let seqs: Vec<i64> = rows.iter().map(|job| job.seq).collect();
    unit.take_in(session, rows).await?;
    for seq in &seqs {
        unit.give_back(*seq)?;
        let job = unit.change_job(*seq)?;
        let (previous, token) = (job.state, job.lease_token.clone());
        if previous == JobState::Pending {
            decide::close(session, *seq, now).await?;
        }
        let job = unit.change_job(*seq)?;
        job.step(Trigger::Expire, now)?;
        let error = JobError::new(FailureKind::Expired, "the job's expires_at passed before it ended");
        unit.error(*seq, &error, now)?;
        unit.note(*seq, EventName::JobExpired, json!({"previous_state": previous}), now)?;
        unit.rings.extend(token.map(Ring::Revoked));
    }
    unit.flush(session).await?;
    Ok(seqs.len())
}

/// `open → expired` for overdue reviews.
pub(in super::super) async fn expire_reviews<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let values = [now.0.into(), row_limit(limit).into()];
    let overdue = read(session, "expire reviews", &sql::REVIEWS_OVERDUE, &values, rows::review).await?;
    let mut expired = 0;
    for review in overdue {
        let silent = Review { state: ReviewState::Expired, decided_at: Some(now), ..review };
        // A unit per review: several may be about the same job.
        let mut own = Unit::default();
        expired += usize::from(decide::settle(session, &mut own, &silent).await?);
        unit.rings.append(&mut own.rings);
    }
    Ok(expired)
}
