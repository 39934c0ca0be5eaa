//! Answers to agents that wait. Every protocol matches answers to questions by the same rule. An answer with a call id
//! or a review id goes to that question. An answer with a key is new, unless the key was used before. Without either,
//! it goes to the last question displayed. If the open question was never displayed, the answer counts as a repetition
//! of the one before, whose reply was lost, or as too late.

use super::waiting::{Among, Seat, Waiting, Wanted, has_voted, reviews, seats, waiting};
use crate::api::App;
use crate::principals::work;
use crate::reply::Failure;
use crate::request::Tenant;
use crate::reviews::check_duties;
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::principal::{Principal, WorkKind};
use turnstone_domain::question::{self, APPROVE, CONFIRMS_TURN, ClientCall, Said, Unanswered};
use turnstone_domain::review::{Review, ReviewState, Vote};
use turnstone_domain::{CallId, Job, JobId, digest};
use turnstone_ojs::OjsError;
use turnstone_specs::agent_spec;
use turnstone_store::{AnswerOutcome, Decision, DecisionOutcome, GivenAnswer, NewAnswer, StoreError};

/// The detail of the error for one text as an answer to several keys.
pub(crate) const SEVERAL: &str = "request_keys";
/// Calls of a job that are searched for its newest answer.
const CALLS: u32 = 50;

/// An answer.
#[derive(Clone)]
pub(crate) struct UserAnswer {
    pub(crate) said: Said,
    /// The question that it answers, by the call or the review that asks.
    pub(crate) call: Option<CallId>,
    /// The idempotency key of the answer, so that a repetition is recognised even when another question is open: see
    /// [`key_of`].
    pub(crate) key: Option<String>,
    /// The user who answers, when it is given; by default the user of the engagement.
    pub(crate) by: Option<String>,
    /// The principal that sends it, which must be allowed to act for the user.
    pub(crate) principal: Arc<Principal>,
    /// The sender's id of it.
    pub(crate) message: Option<String>,
}

/// An answer that was accepted.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The job that asked.
    pub(crate) job: JobId,
    /// The call or the review that asked.
    pub(crate) question: String,
    /// True if it was accepted before, and nothing changed.
    pub(crate) repeated: bool,
}

/// Returns the key of an answer: the client's id of its request, and the `kind` of that id.
pub(crate) fn key_of(kind: &str, name: &str) -> String {
    digest::of_json(&json!([kind, name]))
}

/// Answers a job, or one of its delegates. A repeated answer has no second effect.
///
/// # Errors
/// 403 when another user answers. 422 that names the missing keys, and it still waits. 409 when nothing waits for an
/// answer, another answer was accepted, or one text answers several keys.
pub(crate) async fn give(
    app: &App,
    (of, job): (&Engagement, &Job),
    tenant: &Tenant,
    given: &UserAnswer,
    among: Among,
) -> Result<Taken, Failure> {
    match give_if_asked(app, (of, job), tenant, given, among).await? {
        Some(taken) => Ok(taken),
        None => again(app, (of, job), given, among).await,
    }
}

/// Returns the same, and `None` when nothing waits for it.
///
/// # Errors
/// As [`give`].
pub(crate) async fn give_if_asked(
    app: &App,
    (of, job): (&Engagement, &Job),
    tenant: &Tenant,
    given: &UserAnswer,
    among: Among,
) -> Result<Option<Taken>, Failure> {
    work::check_user(&given.principal, WorkKind::Chosen, &of.user)?;
    let open = meant(app, waiting(app, of, job, among).await?, given, among).await?;
    // Read after the waiting questions: a question that was answered meanwhile has left its key.
    if let Some(key) = &given.key {
        for seat in seats(app, of, &job.id, false).await? {
            if let Some(known) = app.api.store.questions.answer_given(&seat.engagement.id, key).await? {
                return same(known, given).map(Some);
            }
        }
    }
    let Some((open, displayed)) = open else { return Ok(None) };
    if given.by.as_ref().is_some_and(|by| *by != of.user.id) {
        return Err(OjsError::forbidden(format!("Engagement {} is another user's.", of.id)).into());
    }
    // A repetition with a key would be known by the key; the answer may still be for an earlier question.
    let is_plain = given.call.is_some() || (displayed && (given.key.is_some() || fits(&open, given)));
    if !is_plain {
        match before(app, (of, job), given, among).await? {
            Before::Same(taken) if given.key.is_none() => return Ok(Some(taken)),
            Before::Same(_) | Before::Different if !displayed => return Err(different()),
            Before::Same(_) | Before::Different | Before::Nothing => {}
        }
    }
    match &open.wanted {
        Wanted::Word(review) => decide(app, review, &of.user.id, given).await.map(Some),
        Wanted::Answer(requested) => {
            let Some(values) = given.said.to(&requested.question) else { return Err(several(&open)) };
            answer(app, &open.seat, tenant, given, (requested.call_id.clone(), values)).await.map(Some)
        }
    }
}

/// Returns the waiting question that is answered, and whether it was displayed.
async fn meant(
    app: &App,
    mut waiting: Vec<Waiting>,
    given: &UserAnswer,
    among: Among,
) -> Result<Option<(Waiting, bool)>, StoreError> {
    waiting.retain(|one| given.call.as_ref().is_none_or(|call| call.as_str() == one.name()));
    let mut candidates = Vec::with_capacity(waiting.len());
    for one in &waiting {
        let displayed = app.api.store.questions.was_displayed(one.name()).await?;
        candidates.push(Candidate { displayed, fits: fits(one, given) });
    }
    let at = chosen(&candidates, among != Among::Delegates);
    Ok(at.map(|at| (waiting.swap_remove(at), candidates[at].displayed)))
}

/// A question that an answer may be for.
struct Candidate {
    displayed: bool,
    fits: bool,
}

/// Returns the first displayed question and, where all are displayed at once, the first that the answer fits; else the
/// first. Where one is displayed at a time, an answer that does not fit it fits no other.
fn chosen(candidates: &[Candidate], all_at_once: bool) -> Option<usize> {
    let first = |wanted: &dyn Fn(&Candidate) -> bool| candidates.iter().position(wanted);
    let fitting = first(&|one| one.displayed && one.fits).filter(|_| all_at_once);
    fitting.or_else(|| first(&|one| one.displayed)).or_else(|| first(&|_| true))
}

fn fits(one: &Waiting, given: &UserAnswer) -> bool {
    match &one.wanted {
        Wanted::Answer(requested) => given.said.fits(&requested.question),
        Wanted::Word(_) => agreement(given).is_some(),
    }
}

/// An earlier answer.
enum Before {
    /// The same answer: its reply was lost, and it is sent once more.
    Same(Taken),
    /// Another answer, to a question that this one could answer.
    Different,
    Nothing,
}

async fn before(
    app: &App,
    (of, job): (&Engagement, &Job),
    given: &UserAnswer,
    among: Among,
) -> Result<Before, Failure> {
    let mut found = Before::Nothing;
    for seat in seats(app, of, &job.id, false).await? {
        if among.reviews() {
            let decided = reviews(app, &seat.engagement, &seat.job).await?;
            let decided = decided.into_iter().rfind(|review| review.state != ReviewState::Open);
            match (decided, word(given)) {
                (Some(review), Ok(word)) if review.state == word => {
                    return Ok(Before::Same(Taken { job: seat.job, question: review.id.0, repeated: true }));
                }
                (Some(_), Ok(_)) => found = Before::Different,
                _ => {}
            }
        }
        let newest = app.api.store.questions.answers_of(&seat.job, CALLS).await?.into_iter().next();
        match newest.filter(|newest| given.said.could_be(&newest.values)).map(|newest| same(newest, given)) {
            Some(Ok(taken)) => return Ok(Before::Same(taken)),
            Some(Err(_)) => found = Before::Different,
            None => {}
        }
    }
    Ok(found)
}

/// Returns the outcome for a job that does not wait: the accepted answer when it is repeated, or an error.
async fn again(
    app: &App,
    (of, job): (&Engagement, &Job),
    given: &UserAnswer,
    among: Among,
) -> Result<Taken, Failure> {
    if given.by.as_ref().is_some_and(|by| *by != of.user.id) {
        return Err(OjsError::forbidden(format!("Engagement {} is another user's.", of.id)).into());
    }
    let mut refused = None;
    for seat in seats(app, of, &job.id, false).await? {
        match again_at(app, &seat, given, among).await {
            Ok(taken) => return Ok(taken),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    Err(refused.unwrap_or_else(|| waits_not(of)))
}

async fn again_at(app: &App, seat: &Seat, given: &UserAnswer, among: Among) -> Result<Taken, Failure> {
    let user = &seat.engagement.user.id;
    if among.reviews() && agreement(given).is_some() {
        let mine = |review: &&Review| {
            let named = given.call.as_ref().is_none_or(|id| id.as_str() == review.id.as_str());
            named && (review.state != ReviewState::Open || has_voted(review, user))
        };
        if let Some(review) = reviews(app, &seat.engagement, &seat.job).await?.iter().rfind(mine) {
            return decide(app, review, user, given).await;
        }
    }
    let answers = app.api.store.questions.answers_of(&seat.job, CALLS).await?;
    let named = |answer: &GivenAnswer| given.call.as_ref().is_none_or(|call| *call == answer.call);
    match answers.into_iter().find(named) {
        // An answer with a key of its own is no repetition of another one.
        Some(counted) if given.call.is_some() || given.key.is_none() => same(counted, given),
        Some(_) | None => Err(waits_not(&seat.engagement)),
    }
}

fn waits_not(of: &Engagement) -> Failure {
    OjsError::conflict(format!("Engagement {} does not wait for an answer.", of.id)).into()
}

fn several(open: &Waiting) -> Failure {
    let id = &open.seat.engagement.id;
    let message = format!("Engagement {id} waits for several answers.");
    let hint = "POST /engagements/{id}/answer with a value for each key of `awaiting.request_keys`.";
    let keys = match &open.wanted {
        Wanted::Answer(requested) => requested.question.request_keys(),
        Wanted::Word(_) => Value::Null,
    };
    OjsError::new(409, "conflict", message, hint).with(SEVERAL, keys).into()
}

/// Returns the accepted answer, when this one equals it.
fn same(counted: GivenAnswer, given: &UserAnswer) -> Result<Taken, Failure> {
    match given.said.is(&counted.values) {
        true => Ok(Taken { job: counted.job, question: counted.call.0, repeated: true }),
        false => Err(different()),
    }
}

fn different() -> Failure {
    OjsError::conflict("Another answer to this question, or under this name, counted already.").into()
}

/// Answers the question of one job.
async fn answer(
    app: &App,
    seat: &Seat,
    tenant: &Tenant,
    given: &UserAnswer,
    (call, values): (CallId, serde_json::Map<String, Value>),
) -> Result<Taken, Failure> {
    let row = app.api.store.questions.tool_call(&seat.engagement.id, &call).await?;
    if let Some(why) = row.filter(|row| row.outcome.is_none()).and_then(|row| misfit(&row.input, &values)) {
        return Err(OjsError::validation("answers", format!("{why}; it still waits.")).into());
    }
    let new = NewAnswer {
        job: seat.job.clone(),
        tenant: tenant.name().map(str::to_owned),
        call,
        key: given.key.clone(),
        values,
        by: seat.engagement.user.id.clone(),
        message: given.message.clone(),
        at: app.api.clock.now(),
    };
    let (call, repeated) = match app.api.store.intake.answer_question(new).await? {
        AnswerOutcome::Answered(call) => (call, false),
        AnswerOutcome::Repeated(call) => (call, true),
        AnswerOutcome::Different => return Err(different()),
        AnswerOutcome::NotWaiting => return Err(waits_not(&seat.engagement)),
        AnswerOutcome::NotFound => return Err(OjsError::not_found("job", seat.job.shown()).into()),
        AnswerOutcome::Refused(Unanswered::Missing(keys)) => {
            let message = format!("There is {}; it still waits.", Unanswered::Missing(keys.clone()));
            return Err(OjsError::validation("answers", message).with("missing", keys).into());
        }
        AnswerOutcome::Refused(why @ Unanswered::TooLong) => {
            return Err(OjsError::validation("answers", format!("In the answers {why}.")).into());
        }
    };
    Ok(Taken { job: seat.job.clone(), question: call.0, repeated })
}

/// Returns the reason why an answer confirms a turn neither with a yes nor with a no, or is no result of the tool that
/// the client was to execute.
fn misfit(input: &Value, values: &serde_json::Map<String, Value>) -> Option<String> {
    if input.get(CONFIRMS_TURN).is_some() {
        let unclear = values.get(APPROVE).is_some_and(|answer| question::agreement(answer).is_none());
        return unclear.then(|| format!("`{APPROVE}` must be true or false"));
    }
    let ClientCall { tool, returns, request_keys, .. } = ClientCall::deserialize(input).ok()?;
    let (key, result) = values.iter().find(|(key, _)| request_keys.contains_key(key.as_str()))?;
    agent_spec::misfit(&returns, result)
        .map(|why| format!("`{key}` is no result of the tool `{tool}`: {why}"))
}

/// Returns the reviewer's answer, if there is one.
fn agreement(given: &UserAnswer) -> Option<&Value> {
    match &given.said {
        Said::Values(values) => values.get(APPROVE),
        Said::Text(_) => None,
    }
}

/// Returns the decision.
fn word(given: &UserAnswer) -> Result<ReviewState, OjsError> {
    let wrong = |why: &str| OjsError::validation(APPROVE, format!("request_keys.{APPROVE} {why}."));
    match agreement(given) {
        None => Err(wrong("is missing; it still waits").with("missing", vec![APPROVE])),
        Some(answer) => match question::agreement(answer) {
            Some(true) => Ok(ReviewState::Approved),
            Some(false) => Ok(ReviewState::Rejected),
            None => Err(wrong("must be true or false; it still waits")),
        },
    }
}

/// Answers a review as the user.
async fn decide(app: &App, review: &Review, user: &str, given: &UserAnswer) -> Result<Taken, Failure> {
    let agreed = word(given)?;
    let taken = |repeated| Taken { job: review.job_id.clone(), question: review.id.0.clone(), repeated };
    if review.state == agreed {
        return Ok(taken(true));
    }
    check_duties(app, review, &given.principal).await?;
    let approve = agreed == ReviewState::Approved;
    let reason = match &given.said {
        Said::Values(values) => values.get("reason").and_then(Value::as_str).map(str::to_owned),
        Said::Text(_) => None,
    };
    let decision = Decision {
        approve,
        by: user.to_owned(),
        principal: given.principal.identity.clone(),
        reason,
        reported: None,
        at: app.api.clock.now(),
    };
    match app.api.store.intake.decide_review(&review.id, decision).await? {
        DecisionOutcome::Decided(_) | DecisionOutcome::Counted(_) => Ok(taken(false)),
        DecisionOutcome::TooLate(state) if state == agreed => Ok(taken(true)),
        DecisionOutcome::TooLate(state) => {
            Err(OjsError::conflict(format!("It was answered before: {}.", state.as_str())).into())
        }
        DecisionOutcome::NotAsked(review) => {
            Err(OjsError::forbidden(format!("Only {} may answer.", review.members().join(", "))).into())
        }
        DecisionOutcome::VotedAlready => {
            let same = |vote: &&Vote| vote.step == review.step && vote.by == user;
            match review.votes.iter().find(same).is_none_or(|vote| vote.approve == approve) {
                true => Ok(taken(true)),
                false => Err(OjsError::conflict("You have voted already, and otherwise.").into()),
            }
        }
        DecisionOutcome::NotFound => Err(OjsError::not_found("review", review.id.as_str()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AP §6.3.6: a question that was not displayed is answered only when there is no other, however well it fits.
    #[test]
    fn a_displayed_question_precedes_one_that_was_not() {
        let of = |displayed, fits| Candidate { displayed, fits };
        assert_eq!(chosen(&[], true), None);
        assert_eq!(chosen(&[of(true, false), of(false, true)], true), Some(0), "the other one is not shown");
        assert_eq!(chosen(&[of(false, true), of(true, true)], true), Some(1), "it came later");
        assert_eq!(chosen(&[of(true, false), of(true, true)], true), Some(1), "its keys match it");
        assert_eq!(chosen(&[of(true, false), of(true, true)], false), Some(0), "the one that is shown");
        assert_eq!(chosen(&[of(false, false), of(false, true)], true), Some(0));
    }
}
