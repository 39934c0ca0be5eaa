//! Reviews: opened with the job that parks, voted on, reminded of, handed on, decided.
//!
//! The job is held before its reviews are read to be changed, so that of two answers one is second.

mod agent;
mod decide;
mod overdue;
mod unreadable;

use super::super::rows::{self, DecisionRow, ReviewStep, get};
use super::super::session::{Arg, Args, Session};
use super::super::statement::{as_json, execute, read};
use super::super::unit::Unit;
use crate::{Ring, StoreError, damage, sql};
use turnstone_domain::event::{EventBody, OpenedReview, Reason};
use turnstone_domain::review::{NewReview, Review, tool_of};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobId, JobState, ReviewId, Timestamp};

pub(super) use agent::answered;
pub(in super::super) use decide::apply;
pub(in super::super) use overdue::{expire, remind};
pub(in super::super) use unreadable::set_aside;

/// Names as they are searched for: each between line breaks, which no name has.
pub(in super::super) fn between_breaks(names: &[String]) -> String {
    names.iter().fold("\n".to_owned(), |all, name| all + name + "\n")
}

/// Opens a review of a job that parks.
pub(super) fn open(unit: &mut Unit, seq: i64, review: &NewReview, now: Timestamp) -> Result<(), StoreError> {
    unit.review(seq, review, now)?;
    let opened = OpenedReview {
        review_id: review.id.clone(),
        kind: review.kind,
        reviewer: review.reviewer.clone(),
        name: tool_of(&review.question),
        asked_engagement_id: review.asked.clone(),
    };
    unit.note(seq, EventBody::ReviewOpened(opened), now)?;
    unit.rings.push(Ring::Due);
    Ok(())
}

/// Closes the open reviews of a job that ends without them.
pub(super) async fn close(session: &mut Session, job_seq: i64, at: Timestamp) -> Result<(), StoreError> {
    let values = [job_seq.into(), at.0.into()];
    session.execute("close reviews", &sql::UPDATE_CLOSED_REVIEWS, Args::Values(&values)).await.map(|_| ())
}

/// Reads a review; its job is known although the review may not be readable.
async fn find(
    session: &mut Session,
    id: &ReviewId,
) -> Result<Option<(JobId, Result<Review, StoreError>)>, StoreError> {
    let values = [id.as_str().into(), Arg::Text(None)];
    let found = read(session, "read a review", &sql::SELECT_REVIEW_BY_ID, &values, |row| {
        Ok((JobId(get(row, "job_id")?), rows::decode(row).map_err(StoreError::from)))
    });
    Ok(found.await?.pop())
}

/// Reads a review together with its job, which is held. The inner error is a review that cannot be read: its reviews are
/// closed, and a worker receives its job, which it cannot read.
async fn hold_with_job(
    session: &mut Session,
    unit: &mut Unit,
    id: &ReviewId,
    now: Timestamp,
) -> Result<Option<(i64, Result<Review, StoreError>)>, StoreError> {
    let Some((job, _)) = find(session, id).await? else { return Ok(None) };
    let Some(seq) = unit.read_job(session, &job, None).await? else { return Ok(None) };
    let Some((_, review)) = find(session, id).await? else { return Ok(None) };
    if let Err(error) = &review {
        give_up(session, unit, seq, error, now).await?;
    }
    Ok(Some((seq, review)))
}

async fn give_up(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    error: &StoreError,
    now: Timestamp,
) -> Result<(), StoreError> {
    tracing::error!(%error, "a review cannot be read; its job goes on without an answer");
    damage::count(&error.to_string());
    close(session, seq, now).await?;
    if unit.job(seq).is_some_and(|job| job.state == JobState::Pending) {
        unit.change_job(seq)?.step(Trigger::Activate, now)?;
        unit.note(seq, EventBody::JobAvailable(Reason::of("review")), now)?;
        unit.rings.push(Ring::Available);
    }
    unit.flush(session).await
}

/// Writes what may change of an open review. Returns whether it was open.
pub(super) async fn write(session: &mut Session, review: &Review) -> Result<bool, StoreError> {
    let members = match review.plan.steps.is_empty() {
        true => String::new(),
        false => between_breaks(review.members()),
    };
    let votes = (!review.votes.is_empty()).then(|| as_json(&review.votes)).transpose()?;
    let row = ReviewStep {
        id: review.id.clone(),
        reviewer: review.reviewer.clone(),
        members,
        step: review.step,
        votes,
        deadline_at: review.deadline_at,
        remind_at: review.remind_at,
        reminders: review.reminders,
    };
    Ok(execute(session, "change a review", &sql::UPDATE_REVIEW, vec![row], &[]).await? == 1)
}

/// Writes the answer to a review. Returns whether it was open.
pub(super) async fn answer(
    session: &mut Session,
    review: &Review,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let row = DecisionRow {
        id: review.id.clone(),
        state: review.state,
        decided_by: review.decided_by.clone(),
        reason: review.reason.clone(),
        decided_at: at,
        reported: review.reported.as_ref().map(as_json).transpose()?,
    };
    Ok(execute(session, "answer a review", &sql::UPDATE_DECIDED_REVIEW, vec![row], &[]).await? == 1)
}
