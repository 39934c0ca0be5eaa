//! Open reviews whose time has come: reminders, escalation to other reviewers, and at last a rejection.

use super::{decide, hold_with_job, write};
use crate::engine::rows::get;
use crate::engine::session::{Session, limit as row_limit};
use crate::engine::statement::read;
use crate::engine::unit::Unit;
use crate::sql::{self, Text};
use crate::{Ring, StoreError};
use turnstone_domain::event::{EscalatedReview, EventBody, ReviewReminder};
use turnstone_domain::review::{Review, ReviewState, tool_of};
use turnstone_domain::{JobState, ReviewId, Timestamp};

async fn due(
    session: &mut Session,
    (action, text): (&'static str, &Text),
    now: Timestamp,
    limit: usize,
) -> Result<Vec<ReviewId>, StoreError> {
    let values = [now.0.into(), row_limit(limit).into()];
    read(session, action, text, &values, |row| get::<String>(row, "id").map(ReviewId)).await
}

/// Reviews whose deadline has passed: the next are asked, or it is `open → expired`.
pub(in crate::engine) async fn expire(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let overdue = due(session, ("look for late reviews", &sql::SELECT_OVERDUE_REVIEWS), now, limit).await?;
    let mut changed = 0;
    for id in overdue {
        // A unit per review: several may be about the same job.
        let mut own = Unit::default();
        let Some((seq, review)) = hold_with_job(session, &mut own, &id, now).await? else { continue };
        let Ok(review) = review else {
            unit.absorb(own);
            continue;
        };
        if !review.is_overdue(now) {
            continue;
        }
        let handed_on = hand_on(session, &mut own, seq, &review, now).await?.is_some();
        let silent = Review { state: ReviewState::Expired, decided_at: Some(now), ..review };
        changed += usize::from(handed_on || decide::settle(session, &mut own, seq, &silent).await?);
        own.flush(session).await?;
        unit.absorb(own);
    }
    Ok(changed)
}

/// Asks the next reviewers of the plan; `None` when there are none.
pub(super) async fn hand_on(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    review: &Review,
    now: Timestamp,
) -> Result<Option<Review>, StoreError> {
    let waits = unit.job(seq).is_some_and(|job| job.state == JobState::Pending);
    let Some(next) = review.escalated(now).filter(|_| waits) else { return Ok(None) };
    if !write(session, &next).await? {
        return Ok(None);
    }
    let escalated = EscalatedReview {
        review_id: next.id.clone(),
        kind: next.kind,
        from: review.reviewer.clone(),
        reviewer: next.reviewer.clone(),
        members: next.members().to_vec(),
        name: tool_of(&next.question),
        deadline_at: next.deadline_at.map(Timestamp::to_rfc3339),
    };
    unit.note(seq, EventBody::ReviewEscalated(escalated), now)?;
    unit.rings.push(Ring::Due);
    Ok(Some(next))
}

/// Reminds of open reviews whose time for it has come, each once per interval.
pub(in crate::engine) async fn remind(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let waiting = due(session, ("look for open reviews", &sql::SELECT_REVIEWS_TO_REMIND), now, limit).await?;
    let mut reminded = 0;
    for id in waiting {
        let mut own = Unit::default();
        let Some((seq, review)) = hold_with_job(session, &mut own, &id, now).await? else { continue };
        let Ok(review) = review else {
            unit.absorb(own);
            continue;
        };
        let is_due = review.remind_at.is_some_and(|at| at <= now);
        if review.state != ReviewState::Open || !is_due {
            continue;
        }
        let next = review.reminded(now);
        if !write(session, &next).await? {
            continue;
        }
        if own.job(seq).is_some_and(|job| !job.state.is_terminal()) {
            let reminder = ReviewReminder {
                review_id: next.id.clone(),
                kind: next.kind,
                reviewer: next.reviewer.clone(),
                name: tool_of(&next.question),
                missing: next.missing().into_iter().map(str::to_owned).collect(),
                reminders: next.reminders,
                deadline_at: next.deadline_at.map(Timestamp::to_rfc3339),
            };
            own.note(seq, EventBody::ReviewReminded(reminder), now)?;
        }
        own.flush(session).await?;
        unit.absorb(own);
        reminded += 1;
    }
    Ok(reminded)
}
