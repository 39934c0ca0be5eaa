//! ResumeWithInput: what a request waits for, an answer of its user or the word of the caller as reviewer.

use super::begin::Begun;
use super::find;
use crate::api::App;
use crate::engagements::answer::{AnswerTo, Given, answer};
use crate::engagements::waiting::{Seat, Waiting, Wanted, below, has_voted, reviews, waiting};
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::review::{Review, ReviewState, Vote};
use turnstone_domain::{CallId, Job};
use turnstone_ojs::OjsError;
use turnstone_store::{Decision, DecisionOutcome, RunEvent, StoreError};

/// The key by which a reviewer answers.
pub(super) const APPROVE: &str = "approve";

/// Gives a request what it waits for, or what one waits for that works for it. The same once more has no second effect: an
/// answer is for the question that it names, and one that names none is for a question that somebody was told of.
///
/// # Errors
/// 404 for an unknown request; 422 that names a missing key, and it still waits; 403 for another user; 409 when it does not
/// wait, or was answered otherwise.
pub(super) async fn resume(
    app: &App,
    agent: &str,
    id: &str,
    given: Given,
    tenant: &Tenant,
) -> Result<Begun, Failure> {
    let (job, run) = find::request(app, agent, id, tenant).await?;
    let begun = Begun { job: job.id.clone(), request_id: id.to_owned(), run: run.clone() };
    let Some(open) = meant(waiting(app, &run, &job).await?, &given) else {
        again(app, &run, &job, &given, tenant).await?;
        return Ok(begun);
    };
    if is_doubtful(app, &open, &given).await? && repeats(app, &run, &job, &given, tenant).await? {
        return Ok(begun);
    }
    match &open.wanted {
        Wanted::Word(review) => decide(app, review, &run.user.id, &given).await?,
        Wanted::Answer(_) => {
            let named = Given { call: Some(CallId::from(open.name())), ..given };
            answer(app, AnswerTo::Job(&open.seat.job), tenant, named).await?;
        }
    }
    Ok(begun)
}

/// Which of those who wait is answered: the one that is named, else the first whose every key is given, else the first.
fn meant(mut waiting: Vec<Waiting>, given: &Given) -> Option<Waiting> {
    waiting.retain(|one| given.call.as_ref().is_none_or(|call| call.as_str() == one.name()));
    let at = waiting.iter().position(|one| fits(one, given)).unwrap_or(0);
    (at < waiting.len()).then(|| waiting.swap_remove(at))
}

fn fits(one: &Waiting, given: &Given) -> bool {
    match &one.wanted {
        Wanted::Answer(asked) => asked.question.answered(&given.values).is_ok(),
        Wanted::Word(_) => given.values.contains_key(APPROVE),
    }
}

/// Whether this question need not be the one that is meant: it is not named, and nobody was told of it, or its keys are not given.
async fn is_doubtful(app: &App, open: &Waiting, given: &Given) -> Result<bool, StoreError> {
    if given.call.is_some() {
        return Ok(false);
    }
    Ok(!fits(open, given) || !app.api.store.questions.was_told(open.name()).await?)
}

/// The caller's own agent, and those who work for it.
async fn seats(app: &App, run: &Engagement, job: &Job) -> Result<Vec<Seat>, Failure> {
    let mut seats = vec![Seat { engagement: run.id.clone(), job: job.id.clone() }];
    seats.extend(below(app, &job.id, false).await?);
    Ok(seats)
}

/// Whether this was given to somebody before: then the reply was lost, and it is given once more.
async fn repeats(
    app: &App,
    run: &Engagement,
    job: &Job,
    given: &Given,
    tenant: &Tenant,
) -> Result<bool, Failure> {
    for seat in seats(app, run, job).await? {
        let Some((engagement, _, _)) = app.api.store.views.engagement(&seat.engagement).await? else {
            continue;
        };
        let decided = reviews(app, &engagement, &seat.job).await?;
        let decided = decided.iter().rfind(|review| review.state != ReviewState::Open);
        let mine = given.by.as_ref().is_none_or(|by| *by == engagement.user.id);
        if mine && decided.is_some_and(|review| word(&given.values).is_ok_and(|word| review.state == word)) {
            return Ok(true);
        }
        let before = Given { call: None, ..given.clone() };
        if answer(app, AnswerTo::Job(&seat.job), tenant, before).await.is_ok() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is said to a request that does not wait for it: what counted already, or nothing that it could take.
async fn again(
    app: &App,
    run: &Engagement,
    job: &Job,
    given: &Given,
    tenant: &Tenant,
) -> Result<(), Failure> {
    let mut refused = None;
    for seat in seats(app, run, job).await? {
        let Some((engagement, _, _)) = app.api.store.views.engagement(&seat.engagement).await? else {
            continue;
        };
        let user = &engagement.user.id;
        let mine = |review: &&Review| {
            let named = given.call.as_ref().is_none_or(|id| id.as_str() == review.id.as_str());
            named && (review.state != ReviewState::Open || has_voted(review, user))
        };
        let known = reviews(app, &engagement, &seat.job).await?;
        let said = match known.iter().rfind(mine).filter(|_| given.values.contains_key(APPROVE)) {
            Some(review) => decide(app, review, user, given).await,
            None => answer(app, AnswerTo::Job(&seat.job), tenant, given.clone()).await.map(|_| ()),
        };
        match said {
            Ok(()) => return Ok(()),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    Err(refused.unwrap_or_else(|| OjsError::not_found("request", job.id.as_str()).into()))
}

/// Whether a request waits for what its caller is to say. Who asks this tells the caller.
///
/// # Errors
/// The store's.
pub(super) async fn waits(app: &App, run: &Engagement, job: &Job) -> Result<bool, Failure> {
    let waiting = waiting(app, run, job).await?;
    let questions = waiting.iter().map(|one| one.name().to_owned()).collect();
    app.api.store.questions.questions_told(questions).await?;
    Ok(!waiting.is_empty())
}

/// Notes which questions stand among events that are sent to somebody.
///
/// # Errors
/// The store's.
pub(super) async fn heard(app: &App, events: &[RunEvent]) -> Result<(), StoreError> {
    let question = |event: &RunEvent| {
        // Most events are none, and long ones need not be read.
        let body = event.body.contains(r#""request_keys""#).then_some(event.body.as_str())?;
        let event: Value = serde_json::from_str(body).ok()?;
        let asks = event["type"] == "wait_for_input";
        let name = event["call_id"].as_str().or_else(|| event["review_id"].as_str());
        name.filter(|_| asks).map(str::to_owned)
    };
    app.api.store.questions.questions_told(events.iter().filter_map(question).collect()).await
}

/// What a reviewer says: yes or no.
fn word(keys: &Map<String, Value>) -> Result<ReviewState, OjsError> {
    let wrong = |why: &str| OjsError::validation(APPROVE, format!("request_keys.{APPROVE} {why}."));
    match keys.get(APPROVE) {
        None => Err(wrong("is missing; it still waits").with("missing", vec![APPROVE])),
        Some(Value::Bool(true)) => Ok(ReviewState::Approved),
        Some(Value::Bool(false)) => Ok(ReviewState::Rejected),
        Some(Value::String(text)) if matches!(text.as_str(), "true" | "yes") => Ok(ReviewState::Approved),
        Some(Value::String(text)) if matches!(text.as_str(), "false" | "no") => Ok(ReviewState::Rejected),
        Some(_) => Err(wrong("must be true or false; it still waits")),
    }
}

/// The word of the run's user on a review.
async fn decide(app: &App, review: &Review, user: &str, given: &Given) -> Result<(), Failure> {
    if given.by.as_ref().is_some_and(|by| by != user) {
        return Err(OjsError::forbidden(format!("{user} is asked.")).into());
    }
    let agreed = word(&given.values)?;
    if review.state == agreed {
        return Ok(());
    }
    let approve = agreed == ReviewState::Approved;
    let reason = given.values.get("reason").and_then(Value::as_str).map(str::to_owned);
    let decision = Decision { approve, by: user.to_owned(), reason, at: app.api.clock.now() };
    match app.api.store.intake.decide_review(&review.id, decision).await? {
        DecisionOutcome::Decided(_) | DecisionOutcome::Counted(_) => Ok(()),
        DecisionOutcome::TooLate(state) if state == agreed => Ok(()),
        DecisionOutcome::TooLate(state) => {
            Err(OjsError::conflict(format!("It was answered before: {}.", state.as_str())).into())
        }
        DecisionOutcome::NotAsked(review) => {
            Err(OjsError::forbidden(format!("{} is asked.", review.members().join(", "))).into())
        }
        DecisionOutcome::VotedAlready => {
            let same = |vote: &&Vote| vote.step == review.step && vote.by == user;
            match review.votes.iter().find(same).is_none_or(|vote| vote.approve == approve) {
                true => Ok(()),
                false => Err(OjsError::conflict("You have voted already, and otherwise.").into()),
            }
        }
        DecisionOutcome::NotFound => Err(OjsError::not_found("review", review.id.as_str()).into()),
    }
}
