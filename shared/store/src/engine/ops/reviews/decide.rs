//! An answer to a review: a vote, and with the one that decides `open → approved | rejected`; the parked job becomes
//! available.

use super::{between_breaks, hold_with_job, overdue, write};
use crate::engine::rows;
use crate::engine::session::{Args, Session};
use crate::engine::statement::read;
use crate::engine::unit::Unit;
use crate::{Decision, DecisionOutcome, Ring, StoreError, sql};
use serde_json::Value;
use turnstone_domain::event::{DecidedReview, EventBody, LateAnswer, Reason, ReviewVote};
use turnstone_domain::review::{Review, ReviewState, Tally, Vote, is_answered};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobState, ReviewId};

/// Answers a review. Each reviewer has one vote; a late vote changes nothing. The inner error is a review that cannot be
/// read.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    id: &ReviewId,
    decision: &Decision,
) -> Result<Result<DecisionOutcome, StoreError>, StoreError> {
    let Some((seq, review)) = hold_with_job(session, unit, id, decision.at).await? else {
        return Ok(Ok(DecisionOutcome::NotFound));
    };
    let mut review = match review {
        Ok(review) => review,
        Err(unreadable) => return Ok(Err(unreadable)),
    };
    // The scheduler may be late; the current reviewers do not depend on it.
    while review.is_overdue(decision.at)
        && let Some(next) = overdue::hand_on(session, unit, seq, &review, decision.at).await?
    {
        review = next;
    }
    let outcome = vote(session, unit, seq, review, decision).await?;
    unit.flush(session).await?;
    Ok(Ok(outcome))
}

async fn vote(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    mut review: Review,
    decision: &Decision,
) -> Result<DecisionOutcome, StoreError> {
    let overdue = review.is_overdue(decision.at);
    let over = review.state != ReviewState::Open || overdue;
    let requested = if over { review.was_asked(&decision.by) } else { review.may_answer(&decision.by) };
    if !requested {
        return Ok(DecisionOutcome::NotAsked(Box::new(review)));
    }
    if over {
        let state = if overdue { ReviewState::Expired } else { review.state };
        record_late(session, unit, seq, &review, decision).await?;
        return Ok(DecisionOutcome::TooLate(state));
    }
    if unit.job(seq).is_none_or(|job| job.state != JobState::Pending) {
        return Ok(DecisionOutcome::TooLate(ReviewState::Open));
    }
    // One key is one vote, whatever the name that it votes in.
    let is_same = |vote: &Vote| {
        vote.by == decision.by || (decision.principal.is_some() && vote.principal == decision.principal)
    };
    if review.votes.iter().any(|vote| vote.step == review.step && is_same(vote)) {
        return Ok(DecisionOutcome::VotedAlready);
    }
    let Tally { needed, of, .. } = review.tally();
    let outcome = if of > 1 || needed > 1 {
        cast(session, unit, seq, &mut review, decision).await?
    } else if decision.approve {
        Some(ReviewState::Approved)
    } else {
        Some(ReviewState::Rejected)
    };
    let Some(state) = outcome else { return Ok(DecisionOutcome::Counted(Box::new(review))) };
    // The reviewers cannot reach the threshold any more, and the result says so.
    let short = (needed > of).then(|| format!("{needed} have to agree, and only {of} could be asked"));
    let decided = Review {
        state,
        decided_by: Some(decision.by.clone()),
        reason: short.or_else(|| decision.reason.clone()),
        decided_at: Some(decision.at),
        reported: (state == ReviewState::Approved).then(|| reported(&review, decision)).flatten(),
        ..review
    };
    match settle(session, unit, seq, &decided).await? {
        true => Ok(DecisionOutcome::Decided(Box::new(decided))),
        false => Ok(DecisionOutcome::TooLate(ReviewState::Open)),
    }
}

/// Returns the result that an approval reports: the last one, when several reviewers approve.
fn reported(review: &Review, decision: &Decision) -> Option<Value> {
    let votes = review.votes.iter().rev().filter(|vote| vote.step == review.step && vote.approve);
    decision.reported.clone().or_else(|| votes.filter_map(|vote| vote.reported.clone()).next())
}

/// Adds a vote; returns the decision, if the vote leads to one.
async fn cast(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    review: &mut Review,
    decision: &Decision,
) -> Result<Option<ReviewState>, StoreError> {
    review.votes.push(Vote {
        by: decision.by.clone(),
        principal: decision.principal.clone(),
        approve: decision.approve,
        reason: decision.reason.clone(),
        at: decision.at,
        step: review.step,
        reported: decision.reported.clone(),
    });
    write(session, review).await?;
    let tally = review.tally();
    let vote = ReviewVote {
        review_id: review.id.clone(),
        approve: decision.approve,
        by: decision.by.clone(),
        reason: decision.reason.clone(),
        approvals: tally.approvals,
        rejections: tally.rejections,
        needed: tally.needed,
    };
    unit.note(seq, EventBody::ReviewVoted(vote), decision.at)?;
    Ok(tally.outcome())
}

/// A late answer is on record, once for each who gives one, and changes nothing. A stream says nothing after the end of its job.
async fn record_late(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    review: &Review,
    decision: &Decision,
) -> Result<(), StoreError> {
    if unit.job(seq).is_none_or(|job| job.state.is_terminal()) {
        return Ok(());
    }
    let by = between_breaks(std::slice::from_ref(&decision.by));
    let values = [review.id.as_str().into(), by.as_str().into()];
    if session.execute("note a late answer", &sql::UPDATE_LATE_REVIEW, Args::Values(&values)).await? == 0 {
        return Ok(());
    }
    let late = LateAnswer {
        review_id: review.id.clone(),
        approve: decision.approve,
        by: decision.by.clone(),
        reason: decision.reason.clone(),
        state: review.state,
    };
    unit.note(seq, EventBody::ReviewAnsweredLate(late), decision.at)
}

/// Writes a review's end, and wakes its job, which is held, unless it waits for other reviews as well. Returns whether the
/// job was still waiting.
pub(super) async fn settle(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    decided: &Review,
) -> Result<bool, StoreError> {
    if unit.job(seq).is_none_or(|job| job.state != JobState::Pending)
        || !end(session, unit, seq, decided).await?
    {
        return Ok(false);
    }
    let values = [decided.job_id.as_str().into(), decided.turn.into()];
    let reviews =
        read(session, "read reviews", &sql::SELECT_REVIEWS_OF_TURN, &values, rows::decode::<Review>).await?;
    if !is_answered(&reviews) {
        return Ok(true);
    }
    let at = decided.decided_at.unwrap_or_default();
    if reviews.iter().any(|review| review.state == ReviewState::Open) {
        // A rejection before them ends the job.
        super::close(session, seq, at).await?;
    }
    unit.change_job(seq)?.step(Trigger::Activate, at)?;
    unit.note(seq, EventBody::JobAvailable(Reason::of("review")), at)?;
    unit.rings.push(Ring::Available);
    Ok(true)
}

/// Writes a review's end. Returns whether it was open.
pub(super) async fn end(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    decided: &Review,
) -> Result<bool, StoreError> {
    let at = decided.decided_at.unwrap_or_default();
    if !super::answer(session, decided, at).await? {
        return Ok(false);
    }
    let end = DecidedReview {
        review_id: decided.id.clone(),
        state: decided.state,
        decided_by: decided.decided_by.clone(),
        reason: decided.reason.clone(),
    };
    unit.note(seq, EventBody::ReviewDecided(end), at)?;
    Ok(true)
}
