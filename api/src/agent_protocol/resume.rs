//! ResumeWithInput: the values that a request waits for, an answer of its user or the caller's answer as a reviewer.

use super::begin::Begun;
use super::find;
use crate::api::App;
use crate::engagements::answering::{UserAnswer, give};
use crate::engagements::waiting::{self, Among, waiting};
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::Value;
use turnstone_domain::Job;
use turnstone_domain::engagement::Engagement;
use turnstone_store::{RunEvent, StoreError};

/// Answers a request, or one of its delegates. A repeated answer has no second effect.
///
/// # Errors
/// 404 for an unknown request; 422 that names a missing key, and it still waits; 403 for another user; 409 when it does
/// not wait, or was answered differently.
pub(super) async fn resume(
    app: &App,
    agent: &str,
    id: &str,
    given: &UserAnswer,
    tenant: &Tenant,
) -> Result<Begun, Failure> {
    let (job, run) = find::request(app, agent, id, tenant).await?;
    give(app, (&run, &job), tenant, given, Among::Reviews).await?;
    Ok(Begun { job: job.id, request_id: id.to_owned(), run })
}

/// Returns true if a request waits for its caller. The question then counts as displayed to the caller.
///
/// # Errors
/// The error of the store.
pub(super) async fn waits(app: &App, run: &Engagement, job: &Job) -> Result<bool, Failure> {
    let waiting = waiting(app, run, job, Among::Reviews).await?;
    waiting::note_displayed(app, &waiting).await?;
    Ok(!waiting.is_empty())
}

/// Notes the questions among events that are sent, which count as displayed from then on.
///
/// # Errors
/// The error of the store.
pub(super) async fn note_displayed(app: &App, events: &[RunEvent]) -> Result<(), StoreError> {
    let question = |event: &RunEvent| {
        // Most events are no question, and long ones need not be parsed.
        let body = event.body.contains(r#""request_keys""#).then_some(event.body.as_str())?;
        let event: Value = serde_json::from_str(body).ok()?;
        let asks = event["type"] == "wait_for_input";
        let name = event["call_id"].as_str().or_else(|| event["review_id"].as_str());
        name.filter(|_| asks).map(str::to_owned)
    };
    app.api.store.questions.record_displayed(events.iter().filter_map(question).collect()).await
}
