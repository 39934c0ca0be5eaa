//! An answer to a review: `open → approved | rejected`, and the parked job becomes available.

use super::super::rows::{self, JobRow};
use super::super::sql;
use super::super::statement::{failed, read_by};
use super::super::unit::Unit;
use crate::{Decision, DecisionOutcome, Ring, StoreError};
use serde_json::json;
use sqlx::sqlite::SqliteConnection;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::state::Trigger;
use turnstone_domain::{EventName, JobState, ReviewId, Timestamp};

/// Answers a review. Exactly one answer counts; a late one changes nothing.
pub(in super::super) async fn apply(
    conn: &mut SqliteConnection,
    unit: &mut Unit,
    id: &ReviewId,
    decision: &Decision,
) -> Result<DecisionOutcome, StoreError> {
    let found = sqlx::query(sql::REVIEW_BY_ID).bind(id.as_str()).fetch_optional(&mut *conn).await;
    let Some(row) = found.map_err(failed("read a review"))? else { return Ok(DecisionOutcome::NotFound) };
    let review = rows::review(&row)?;
    let overdue = review.deadline_at.is_some_and(|deadline| deadline <= decision.at);
    if review.state != ReviewState::Open || overdue {
        let state =
            if overdue && review.state == ReviewState::Open { ReviewState::Expired } else { review.state };
        return Ok(DecisionOutcome::TooLate(state));
    }
    let state = if decision.approve { ReviewState::Approved } else { ReviewState::Rejected };
    let decided = Review {
        state,
        decided_by: Some(decision.by.clone()),
        reason: decision.reason.clone(),
        decided_at: Some(decision.at),
        ..review
    };
    if !settle(conn, unit, &decided).await? {
        return Ok(DecisionOutcome::TooLate(ReviewState::Open));
    }
    Ok(DecisionOutcome::Decided(Box::new(decided)))
}

/// Writes a review's answer and wakes its job. Returns whether the job was still waiting.
pub(in super::super) async fn settle(
    conn: &mut SqliteConnection,
    unit: &mut Unit,
    decided: &Review,
) -> Result<bool, StoreError> {
    let jobs = read_by(conn, "read a job", sql::JOBS_BY_ID, &[&decided.job_id], JobRow::decode).await?;
    unit.take_in(conn, jobs).await?;
    let Some(seq) = unit.seq_of(&decided.job_id) else { return Ok(false) };
    if unit.change_job(seq)?.state != JobState::Pending {
        return Ok(false);
    }
    let at = decided.decided_at.unwrap_or_default();
    let done = sqlx::query(sql::REVIEW_DECIDE)
        .bind(decided.id.as_str())
        .bind(decided.state.as_str())
        .bind(decided.decided_by.as_deref())
        .bind(decided.reason.as_deref())
        .bind(at.0)
        .execute(&mut *conn)
        .await
        .map_err(failed("answer a review"))?;
    if done.rows_affected() != 1 {
        return Ok(false);
    }
    let data = json!({"review_id": decided.id, "state": decided.state, "decided_by": decided.decided_by,
                      "reason": decided.reason});
    unit.note(seq, EventName::ReviewDecided, data, at)?;
    unit.change_job(seq)?.step(Trigger::Activate, at)?;
    unit.note(seq, EventName::JobAvailable, json!({"reason": "review"}), at)?;
    unit.rings.push(Ring::Available);
    unit.flush(conn).await?;
    Ok(true)
}

/// Closes the open reviews of a job that ends without them.
pub(in super::super) async fn close(
    conn: &mut SqliteConnection,
    job_seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(sql::REVIEWS_CLOSE)
        .bind(job_seq)
        .bind(at.0)
        .execute(conn)
        .await
        .map(|_| ())
        .map_err(failed("close reviews"))
}
