//! An answer to a review: `open → approved | rejected`, and the parked job becomes available.

use super::super::rows::{self, JobRow};
use super::super::session::{Arg, Args, Session};
use super::super::statement::{read, read_by};
use super::super::unit::Unit;
use crate::{Decision, DecisionOutcome, Ring, StoreError, sql};
use serde_json::json;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::state::Trigger;
use turnstone_domain::{EventName, JobState, ReviewId, Timestamp};

/// Answers a review. Exactly one answer counts; a late one changes nothing.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    id: &ReviewId,
    decision: &Decision,
) -> Result<DecisionOutcome, StoreError> {
    let values = [id.as_str().into(), Arg::Text(None)];
    let mut found = read(session, "read a review", &sql::REVIEW_BY_ID, &values, rows::review).await?;
    let Some(review) = found.pop() else { return Ok(DecisionOutcome::NotFound) };
    let overdue = review.deadline_at.is_some_and(|deadline| deadline <= decision.at);
    if review.state != ReviewState::Open || overdue {
        let state =
            if overdue && review.state == ReviewState::Open { ReviewState::Expired } else { review.state };
        record_late(session, unit, &review, decision).await?;
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
    if !settle(session, unit, &decided).await? {
        return Ok(DecisionOutcome::TooLate(ReviewState::Open));
    }
    Ok(DecisionOutcome::Decided(Box::new(decided)))
}

/// A late answer is on record, and changes nothing. A stream says nothing after the end of its job.
async fn record_late<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    review: &Review,
    decision: &Decision,
) -> Result<(), StoreError> {
    let keys = vec![(review.job_id.clone(),)];
    let jobs = read_by(session, "read a job", &sql::JOBS_TO_CHANGE, keys, JobRow::decode).await?;
    unit.take_in(session, jobs).await?;
    let Some(seq) = unit.seq_of(&review.job_id) else { return Ok(()) };
    if unit.job(seq).is_none_or(|job| job.state.is_terminal()) {
        return Ok(());
    }
    let data = json!({"review_id": review.id, "approve": decision.approve, "by": decision.by,
                      "reason": decision.reason, "state": review.state});
    unit.note(seq, EventName::ReviewAnsweredLate, data, decision.at)?;
    unit.flush(session).await
}

/// Writes a review's answer and wakes its job. Returns whether the job was still waiting.
pub(in super::super) async fn settle<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    decided: &Review,
) -> Result<bool, StoreError> {
    let keys = vec![(decided.job_id.clone(),)];
    let jobs = read_by(session, "read a job", &sql::JOBS_TO_CHANGE, keys, JobRow::decode).await?;
    unit.take_in(session, jobs).await?;
    let Some(seq) = unit.seq_of(&decided.job_id) else { return Ok(false) };
    if unit.change_job(seq)?.state != JobState::Pending {
        return Ok(false);
    }
    let at = decided.decided_at.unwrap_or_default();
    let values = [
        decided.id.as_str().into(),
        decided.state.as_str().into(),
        decided.decided_by.as_deref().into(),
        decided.reason.as_deref().into(),
        at.0.into(),
    ];
    if session.execute("answer a review", &sql::REVIEW_DECIDE, Args::Values(&values)).await? != 1 {
        return Ok(false);
    }
    let data = json!({"review_id": decided.id, "state": decided.state, "decided_by": decided.decided_by,
                      "reason": decided.reason});
    unit.note(seq, EventName::ReviewDecided, data, at)?;
    unit.change_job(seq)?.step(Trigger::Activate, at)?;
    unit.note(seq, EventName::JobAvailable, json!({"reason": "review"}), at)?;
    unit.rings.push(Ring::Available);
    unit.flush(session).await?;
    Ok(true)
}

/// Closes the open reviews of a job that ends without them.
pub(in super::super) async fn close<S: Session>(
    session: &mut S,
    job_seq: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    let values = [job_seq.into(), at.0.into()];
    session.execute("close reviews", &sql::REVIEWS_CLOSE, Args::Values(&values)).await.map(|_| ())
}
