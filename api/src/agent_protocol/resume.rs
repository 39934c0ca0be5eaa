//! ResumeWithInput: what a request waits for, an answer of its user or the word of the caller as reviewer.

use super::begin::Begun;
use super::find;
use crate::api::App;
use crate::engagements::answer::{AnswerTo, Given, answer};
use crate::engagements::waiting::{Seat, Waiting, Wanted, below, review, waiting};
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value};
use turnstone_domain::Job;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_ojs::OjsError;
use turnstone_store::{Decision, DecisionOutcome};

/// The key by which a reviewer answers.
pub(super) const APPROVE: &str = "approve";

/// Gives a request what it waits for, or what one waits for that works for it. The same once more has no second effect.
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
    match meant(waiting(app, &run, &job).await?, &given) {
        Some(Waiting { wanted: Wanted::Word(review), .. }) => decide(app, &review, &given).await?,
        Some(Waiting { seat, .. }) => {
            answer(app, AnswerTo::Job(&seat.job), tenant, given).await?;
        }
        None => again(app, &run, &job, given, tenant).await?,
    }
    Ok(begun)
}

/// Which of those who wait is answered: the one that is named, else the first whose every key is given, else the first.
fn meant(mut waiting: Vec<Waiting>, given: &Given) -> Option<Waiting> {
    waiting.retain(|one| given.call.as_ref().is_none_or(|call| call.as_str() == one.name()));
    let fits = |one: &Waiting| match &one.wanted {
        Wanted::Answer(asked) => asked.question.answered(&given.values).is_ok(),
        Wanted::Word(_) => given.values.contains_key(APPROVE),
    };
    let at = waiting.iter().position(fits).unwrap_or(0);
    (at < waiting.len()).then(|| waiting.swap_remove(at))
}

/// What is said to a request that waits for nothing: what counted already, or nothing that it could take.
async fn again(app: &App, run: &Engagement, job: &Job, given: Given, tenant: &Tenant) -> Result<(), Failure> {
    let own = Seat { engagement: run.id.clone(), job: job.id.clone() };
    let mut refused = None;
    for seat in std::iter::once(own).chain(below(app, &job.id, false).await?) {
        let Some((engagement, _, _)) = app.api.store.views.engagement(&seat.engagement).await? else {
            continue;
        };
        let decided = review(app, &engagement, &seat.job).await?;
        let said = match decided.filter(|review| names(&given, review)) {
            Some(review) => decide(app, &review, &given).await,
            None => {
                let given = given.clone();
                answer(app, AnswerTo::Job(&seat.job), tenant, given).await.map(|_| ())
            }
        };
        match said {
            Ok(()) => return Ok(()),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    Err(refused.unwrap_or_else(|| OjsError::not_found("request", job.id.as_str()).into()))
}

/// Whether this is the word of a reviewer, and about this review.
fn names(given: &Given, review: &Review) -> bool {
    let meant = given.call.as_ref().is_none_or(|id| id.as_str() == review.id.as_str());
    meant && given.values.contains_key(APPROVE)
}

/// Whether a request waits for what its caller is to say.
///
/// # Errors
/// The store's.
pub(super) async fn waits(app: &App, run: &Engagement, job: &Job) -> Result<bool, Failure> {
    Ok(!waiting(app, run, job).await?.is_empty())
}

async fn decide(app: &App, review: &Review, given: &Given) -> Result<(), Failure> {
    let (keys, by): (&Map<String, Value>, _) = (&given.values, given.by.as_ref());
    if by.is_some_and(|by| *by != review.reviewer) {
        return Err(OjsError::forbidden(format!("{} is asked.", review.reviewer)).into());
    }
    let wrong = |why: &str| OjsError::validation(APPROVE, format!("request_keys.{APPROVE} {why}."));
    let approve = match keys.get(APPROVE) {
        None => return Err(wrong("is missing; it still waits").with("missing", vec![APPROVE]).into()),
        Some(Value::Bool(approve)) => *approve,
        Some(Value::String(text)) if matches!(text.as_str(), "true" | "yes") => true,
        Some(Value::String(text)) if matches!(text.as_str(), "false" | "no") => false,
        Some(_) => return Err(wrong("must be true or false; it still waits").into()),
    };
    let agreed = if approve { ReviewState::Approved } else { ReviewState::Rejected };
    if review.state == agreed {
        return Ok(());
    }
    let reason = keys.get("reason").and_then(Value::as_str).map(str::to_owned);
    let decision = Decision { approve, by: review.reviewer.clone(), reason, at: app.api.clock.now() };
    let outcome = app.api.store.intake.decide_review(&review.id, decision).await?;
    match outcome {
        DecisionOutcome::TooLate(state) if state == agreed => Ok(()),
        DecisionOutcome::TooLate(state) => {
            Err(OjsError::conflict(format!("It was answered before: {}.", state.as_str())).into())
        }
        DecisionOutcome::NotFound => Err(OjsError::not_found("review", review.id.as_str()).into()),
        _ => Ok(()),
    }
}
