//! ResumeWithInput: what a request waits for, an answer of its user or the word of the caller as reviewer.

use super::begin::Begun;
use super::find;
use crate::api::App;
use crate::engagements::answering::{Given, give};
use crate::engagements::waiting::{self, Among, waiting};
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::Value;
use turnstone_domain::Job;
use turnstone_domain::engagement::Engagement;
use turnstone_store::{RunEvent, StoreError};

/// Gives a request what it waits for, or what one waits for that works for it. The same once more has no second effect.
///
/// # Errors
/// 404 for an unknown request; 422 that names a missing key, and it still waits; 403 for another user; 409 when it does not
/// wait, or was answered otherwise.
pub(super) async fn resume(
    app: &App,
    agent: &str,
    id: &str,
    given: &Given,
    tenant: &Tenant,
) -> Result<Begun, Failure> {
    let (job, run) = find::request(app, agent, id, tenant).await?;
    give(app, (&run, &job), tenant, given, Among::Reviews).await?;
    Ok(Begun { job: job.id, request_id: id.to_owned(), run })
}

/// Whether a request waits for what its caller is to say. Who asks this tells the caller.
///
/// # Errors
/// The store's.
pub(super) async fn waits(app: &App, run: &Engagement, job: &Job) -> Result<bool, Failure> {
    let waiting = waiting(app, run, job, Among::Reviews).await?;
    waiting::tell(app, &waiting).await?;
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
