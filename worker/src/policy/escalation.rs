//! Questions about the engagement itself: escalated errors, and confirmations before the next turn.
//!
//! A question belongs to the turn with which the job resumes, so the answer is recalled with it. The hash of
//! the error's code replaces the hash of arguments.

use super::reviewer;
use super::reviewers::{self, OPERATOR};
use crate::state::{Claimed, Outbox, Stop, TurnHistory};
use serde_json::{Value, json};
use turnstone_domain::agent::errors::Contact;
use turnstone_domain::digest;
use turnstone_domain::error::{Escalation, EscalationType, FailureKind};
use turnstone_domain::review::{NewReview, ReviewAnswer, ReviewKind, ReviewPlan, ReviewState};
use turnstone_domain::{CallId, JobError, ReviewId, Wait};

/// The subject of a question.
pub struct Topic {
    kind: ReviewKind,
    /// The call; empty for the engagement.
    about: CallId,
    /// The hash of the error's code.
    subject: String,
}

impl Topic {
    /// Returns the topic of an error of a call; the id is empty for one of the engagement.
    #[must_use]
    pub fn error(kind: FailureKind, about: CallId) -> Self {
        Self { kind: ReviewKind::Escalation, about, subject: of_kind(kind) }
    }
}

fn of_kind(kind: FailureKind) -> String {
    digest::of_text(kind.code())
}

/// Returns a question to this contact, or to the operators instead of an agent.
fn review(outbox: &mut Outbox, topic: Topic, question: Value, contact: &Contact) -> NewReview {
    let wait_ms = contact.timeout_ms.and_then(|ms| i64::try_from(ms).ok());
    let current = outbox.position.turn;
    let review = NewReview {
        id: ReviewId(outbox.claimed.deps.ids.next()),
        turn: outbox.pending.position.as_ref().map_or(current, |position| position.turn),
        call_id: topic.about,
        kind: topic.kind,
        reviewer: String::new(),
        question,
        arguments_hash: topic.subject,
        deadline_at: None,
        plan: ReviewPlan::default(),
        asked: None,
    };
    let agent = reviewer::supervisor(contact).is_some();
    let target = if contact.target.is_empty() || agent { OPERATOR } else { &contact.target };
    reviewers::assign_or_operator(&outbox.claimed, review, target, wait_ms)
}

/// Parks with a question to this contact: a person, or an agent that supervises.
pub fn ask(
    past: &TurnHistory,
    outbox: &mut Outbox,
    topic: Topic,
    question: Value,
    contact: &Contact,
) -> Stop {
    let Some(supervisor) = supervisor(&outbox.claimed, contact) else {
        return Wait::Review(review(outbox, topic, question, contact)).into();
    };
    if answer(past, &topic) == Some(ReviewState::Open) {
        return Wait::Children(Vec::new()).into();
    }
    let text = format!(
        "You supervise the agent `{}`, which asks for your decision. Answer with one JSON object and nothing else: \
         {{\"approve\": true or false, \"reason\": \"one sentence\"}}.\n\n{question}",
        outbox.claimed.agent.name
    );
    let unaddressed = review(outbox, topic, question, contact);
    let deadline_at = contact.timeout_ms.and_then(|ms| i64::try_from(ms).ok());
    let deadline_at = deadline_at.map(|ms| outbox.claimed.deps.clock.now().plus_ms(ms));
    let plan = ReviewPlan::default();
    reviewer::ask(past, outbox, NewReview { reviewer: supervisor, deadline_at, plan, ..unaddressed }, text)
}

/// The agent that decides in the place of a person, as a word of its reviewers. One that is not on this
/// server, would be too deep, or does not fit into the tree, leaves the decision to a person.
fn supervisor(claimed: &Claimed, contact: &Contact) -> Option<String> {
    let word = reviewer::supervisor(contact)?;
    let known = claimed.reviewers.get(&word).is_some_and(Option::is_some);
    let fits = claimed.too_many_jobs("", 1).is_none();
    (known && fits && claimed.depth < i64::from(claimed.agent.limits.max_delegation_depth)).then_some(word)
}

/// Returns the state of the newest question about this.
pub fn answer(past: &TurnHistory, topic: &Topic) -> Option<ReviewState> {
    let newest = past.reviews.iter().rev().find(|review| {
        review.kind == topic.kind && review.call_id == topic.about && review.arguments_hash == topic.subject
    });
    newest.map(|review| review.state)
}

/// Returns true if an operator permitted another turn after the current one in spite of this error.
pub fn is_granted(past: &TurnHistory, kind: FailureKind) -> bool {
    answer(past, &Topic::error(kind, CallId(String::new()))) == Some(ReviewState::Approved)
}

/// Checks that the engagement was not rejected; a rejected one does not continue.
///
/// # Errors
/// [`Stop::Fail`] with the error of the question.
pub fn not_refused(past: &TurnHistory) -> Result<(), Stop> {
    let newest = past
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
pub fn confirmed(past: &TurnHistory, outbox: &mut Outbox) -> Result<(), Stop> {
    if !outbox.claimed.agent.chain.confirm_between_turns {
        return Ok(());
    }
    let newest = past.reviews.iter().rev().find(|review| review.kind == ReviewKind::Confirmation);
    match newest {
        Some(review) if review.state == ReviewState::Approved => Ok(()),
        Some(review) if review.state != ReviewState::Open => {
            Err(refusal(FailureKind::Policy, "the next turn was refused", review).into())
        }
        _ => {
            let contact = outbox.claimed.agent.errors.escalation.clone().unwrap_or_default();
            let calls: Vec<Value> = past
                .conversation
                .answer()
                .map(|answer| answer.tool_calls.iter().map(|call| json!({"name": call.name})).collect())
                .unwrap_or_default();
            let question = json!({"turn": outbox.position.turn, "tool_calls": calls,
                "approve_means": "begin the next turn", "reject_means": "end the job"});
            let (about, subject) = (CallId(String::new()), String::new());
            Err(ask(
                past,
                outbox,
                Topic { kind: ReviewKind::Confirmation, about, subject },
                question,
                &contact,
            ))
        }
    }
}

/// Returns the failure of a job that was rejected, or not answered in time. It is final.
fn refusal(kind: FailureKind, what: &str, review: &ReviewAnswer) -> JobError {
    JobError::new(kind, sentence(review, what, what))
        .for_good()
        .escalated(decided(Some(decider(review)), review.state))
}

/// Returns the sentence about a review that was rejected, or not answered in time.
pub fn sentence(review: &ReviewAnswer, rejected: &str, unanswered: &str) -> String {
    let why = review.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    match &review.decided_by {
        Some(by) => format!("{rejected} by {by}{why}"),
        None => format!("{unanswered}: no reviewer answered in time{why}"),
    }
}

/// Returns the name of the person who decided.
pub fn decider(review: &ReviewAnswer) -> String {
    review.decided_by.clone().unwrap_or_else(|| "no reviewer in time".to_owned())
}

/// Returns the record that a person decided about an error, so that no handler of the manifest asks again.
pub fn decided(target: Option<String>, state: ReviewState) -> Escalation {
    Escalation { to: EscalationType::Human, target, context: Some(json!({"state": state})) }
}
