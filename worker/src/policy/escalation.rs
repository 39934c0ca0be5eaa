//! Questions about the engagement itself: escalated errors, and confirmations before the next turn.
//!
//! A question belongs to the turn with which the job resumes, so the answer is recalled with it. The hash of
//! the error's code replaces the hash of arguments.

use super::reviewer;
use super::reviewers::{self, OPERATOR};
use crate::state::{Stop, Turn};
use serde_json::{Value, json};
use turnstone_domain::agent::errors::Contact;
use turnstone_domain::digest;
use turnstone_domain::error::{Escalation, EscalationType, FailureKind};
use turnstone_domain::review::{NewReview, ReviewAnswer, ReviewKind, ReviewPlan, ReviewState};
use turnstone_domain::{CallId, JobError, ReviewId, Wait};

/// Returns the subject of a question about an error.
pub fn subject(error: &JobError) -> String {
    of_kind(error.kind)
}

fn of_kind(kind: FailureKind) -> String {
    digest::of_text(kind.code())
}

/// Returns a question to this contact, or to the operators instead of an agent.
fn review(
    turn: &mut Turn,
    kind: ReviewKind,
    about: CallId,
    subject: String,
    question: Value,
    contact: &Contact,
) -> NewReview {
    let wait_ms = contact.timeout_ms.and_then(|ms| i64::try_from(ms).ok());
    let current = turn.outbox.position.turn;
    let review = NewReview {
        id: ReviewId(turn.claimed.deps.ids.next()),
        turn: turn.outbox.pending.position.as_ref().map_or(current, |position| position.turn),
        call_id: about,
        kind,
        reviewer: String::new(),
        question,
        arguments_hash: subject,
        deadline_at: None,
        plan: ReviewPlan::default(),
        asked: None,
    };
    let agent = reviewer::supervisor(contact).is_some();
    let target = if contact.target.is_empty() || agent { OPERATOR } else { &contact.target };
    reviewers::assign_or_operator(turn, review, target, wait_ms)
}

/// Parks with a question to this contact: a person, or an agent that supervises.
pub fn ask(
    turn: &mut Turn,
    kind: ReviewKind,
    about: CallId,
    subject: String,
    question: Value,
    contact: &Contact,
) -> Stop {
    let Some(supervisor) = supervisor(turn, contact) else {
        return Stop::Park(Box::new(Wait::Review(review(turn, kind, about, subject, question, contact))));
    };
    if answer(turn, kind, &about, &subject) == Some(ReviewState::Open) {
        return Stop::Park(Box::new(Wait::Children(Vec::new())));
    }
    let text = format!(
        "You supervise the agent `{}`, which asks for your decision. Answer with one JSON object and nothing else: \
         {{\"approve\": true or false, \"reason\": \"one sentence\"}}.\n\n{question}",
        turn.claimed.agent.name
    );
    let unaddressed = review(turn, kind, about, subject, question, contact);
    let deadline_at = contact.timeout_ms.and_then(|ms| i64::try_from(ms).ok());
    let deadline_at = deadline_at.map(|ms| turn.claimed.deps.clock.now().plus_ms(ms));
    let plan = ReviewPlan::default();
    reviewer::ask(turn, NewReview { reviewer: supervisor, deadline_at, plan, ..unaddressed }, text)
}

/// The agent that decides in the place of a person, as a word of its reviewers. One that is not on this
/// server, or would be too deep, leaves the decision to a person.
fn supervisor(turn: &Turn, contact: &Contact) -> Option<String> {
    let word = reviewer::supervisor(contact)?;
    let known = turn.claimed.reviewers.get(&word).is_some_and(Option::is_some);
    (known && turn.claimed.depth < i64::from(turn.claimed.agent.limits.max_delegation_depth)).then_some(word)
}

/// Returns the state of the newest question about this.
pub fn answer(turn: &Turn, kind: ReviewKind, about: &CallId, subject: &str) -> Option<ReviewState> {
    let newest =
        turn.past.reviews.iter().rev().find(|review| {
            review.kind == kind && review.call_id == *about && review.arguments_hash == subject
        });
    newest.map(|review| review.state)
}

/// Returns true if an operator permitted another turn after the current one in spite of this error.
pub fn is_granted(turn: &Turn, kind: FailureKind) -> bool {
    let about = CallId(String::new());
    answer(turn, ReviewKind::Escalation, &about, &of_kind(kind)) == Some(ReviewState::Approved)
}

/// Checks that the engagement was not rejected; a rejected one does not continue.
///
/// # Errors
/// [`Stop::Fail`] with the error of the question.
pub fn not_refused(turn: &Turn) -> Result<(), Stop> {
    let newest = turn
        .past
        .reviews
        .iter()
        .rev()
        .find(|review| review.kind == ReviewKind::Escalation && review.call_id.as_str().is_empty());
    match newest {
        Some(review) if matches!(review.state, ReviewState::Rejected | ReviewState::Expired) => {
            let requested = FailureKind::ALL.iter().find(|kind| of_kind(**kind) == review.arguments_hash);
            let kind = requested.copied().unwrap_or(FailureKind::Escalation);
            Err(refusal(kind, "the error was not forgiven", review).into())
        }
        _ => Ok(()),
    }
}

/// Asks the agent's contact for a confirmation before the next turn, where the user may not be asked (OSSA
/// §4).
///
/// # Errors
/// [`Stop::Park`] until there is an answer, [`Stop::Fail`] after a rejection.
pub fn confirmed(turn: &mut Turn) -> Result<(), Stop> {
    if !turn.claimed.agent.chain.confirm_between_turns {
        return Ok(());
    }
    let newest = turn.past.reviews.iter().rev().find(|review| review.kind == ReviewKind::Confirmation);
    match newest {
        Some(review) if review.state == ReviewState::Approved => Ok(()),
        Some(review) if review.state != ReviewState::Open => {
            Err(refusal(FailureKind::Policy, "the next turn was refused", review).into())
        }
        _ => {
            let contact = turn.claimed.agent.errors.escalation.clone().unwrap_or_default();
            let calls: Vec<Value> = turn
                .past
                .conversation
                .answer()
                .map(|answer| answer.tool_calls.iter().map(|call| json!({"name": call.name})).collect())
                .unwrap_or_default();
            let question = json!({"turn": turn.outbox.position.turn, "tool_calls": calls,
                "approve_means": "begin the next turn", "reject_means": "end the job"});
            let (kind, about) = (ReviewKind::Confirmation, CallId(String::new()));
            Err(ask(turn, kind, about, String::new(), question, &contact))
        }
    }
}

/// Returns the failure of a job that was rejected, or not answered in time. It is final.
fn refusal(kind: FailureKind, what: &str, review: &ReviewAnswer) -> JobError {
    let by = review.decided_by.clone().unwrap_or_else(|| "no reviewer in time".to_owned());
    let why = review.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let decided = Escalation {
        to: EscalationType::Human,
        target: Some(by.clone()),
        context: Some(json!({"state": review.state})),
    };
    let message = match &review.decided_by {
        Some(by) => format!("{what} by {by}{why}"),
        None => format!("{what}: no reviewer answered in time{why}"),
    };
    JobError { retryable: false, ..JobError::new(kind, message) }.escalated(decided)
}
