//! ResumeWithInput: what a request waits for, an answer of its user or the word of the caller as reviewer.

use super::begin::Begun;
use super::find;
use crate::api::App;
use crate::engagements::answer::{AnswerTo, Given, answer, asked};
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::{Job, JobState};
use turnstone_ojs::OjsError;
use turnstone_store::{Decision, DecisionOutcome, Page, ReviewFilter};

/// The key by which a reviewer answers.
pub(super) const APPROVE: &str = "approve";
/// Reviews of a run that are looked through.
const REVIEWS: u32 = 1000;

/// Gives a request what it waits for. The same once more has no second effect.
///
/// # Errors
/// 404 for an unknown request; 422 that names a missing key, and it still waits; 403 for another user; 409 when it does not
/// wait, or was answered otherwise.
pub(super) async fn resume(
    app: &App,
    agent: &str,
    id: &str,
    (keys, by): (&Map<String, Value>, Option<String>),
    tenant: &Tenant,
) -> Result<Begun, Failure> {
    let (job, run) = find::request(app, agent, id, tenant).await?;
    let asks = asked(app, &run.id, &job).await?.is_some();
    let review = if asks { None } else { review(app, &run, &job).await? };
    match review.filter(|review| review.state == ReviewState::Open || keys.contains_key(APPROVE)) {
        Some(review) => decide(app, &review, keys, by.as_ref()).await?,
        None => {
            let given = Given { values: keys.clone(), call: None, by };
            answer(app, AnswerTo::Job(&job.id), tenant, given).await?;
        }
    }
    Ok(Begun { job: job.id, request_id: id.to_owned(), run })
}

/// Whether a request waits for what its caller is to say.
///
/// # Errors
/// The store's.
pub(super) async fn waits(app: &App, run: &Engagement, job: &Job) -> Result<bool, Failure> {
    if job.state != JobState::Pending {
        return Ok(false);
    }
    let review = review(app, run, job).await?;
    Ok(asked(app, &run.id, job).await?.is_some()
        || review.is_some_and(|review| review.state == ReviewState::Open))
}

/// The newest review of the request whose reviewer is its own user.
async fn review(app: &App, run: &Engagement, job: &Job) -> Result<Option<Review>, Failure> {
    if !run.user.is_known() {
        return Ok(None);
    }
    let filter = ReviewFilter {
        reviewer: Some(run.user.id.clone()),
        engagement: Some(run.id.clone()),
        ..ReviewFilter::default()
    };
    let reviews = app.api.store.views.reviews(&filter, Page { limit: REVIEWS, offset: 0 }).await?;
    Ok(reviews.into_iter().rfind(|review| review.job_id == job.id))
}

async fn decide(
    app: &App,
    review: &Review,
    keys: &Map<String, Value>,
    by: Option<&String>,
) -> Result<(), Failure> {
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
