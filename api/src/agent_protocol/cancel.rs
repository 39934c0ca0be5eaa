//! CancelRequest: ends a request, in any state.

use super::{find, run_events};
use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::value::RawValue;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{Job, JobId};
use turnstone_ojs::OjsError;
use turnstone_store::{CancelOutcome, StoreError};

/// Ends a request; one that has ended already stays as it ended.
///
/// # Errors
/// 404 for an unknown request, and errors of the store.
pub(super) async fn cancel(
    app: &App,
    agent: &str,
    id: &str,
    tenant: &Tenant,
) -> Result<(Box<Job>, Engagement), Failure> {
    let (job, run) = find::request(app, agent, id, tenant).await?;
    match app.api.store.intake.cancel_of(&job.id, tenant.name(), app.api.clock.now()).await? {
        CancelOutcome::Cancelled { .. } | CancelOutcome::AlreadyEnded(_) => Ok((Box::new(job), run)),
        CancelOutcome::NotFound => Err(OjsError::not_found("request", id).into()),
    }
}

/// Returns the first or the last event of a request, once it is published.
///
/// # Errors
/// The error of the store.
pub(super) async fn edge(
    app: &App,
    run: &Engagement,
    job: &JobId,
    last: bool,
) -> Result<Option<Box<RawValue>>, StoreError> {
    run_events::catch_up(app, run).await?;
    let runs = &app.api.store.runs;
    let numbered = runs.run_requests(&run.id).await?.into_iter().find(|request| request.job == *job);
    let Some(number) = numbered.and_then(|numbered| if last { numbered.ended } else { Some(numbered.began) })
    else {
        return Ok(None);
    };
    let event = runs.run_events(&run.id, number - 1, Some(job), 1).await?.events.pop();
    Ok(event.and_then(|event| RawValue::from_string(event.body).ok()))
}
