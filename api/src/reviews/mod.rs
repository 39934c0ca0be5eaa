//! The inbox of reviews: list, show, approve, reject.

mod decide;
mod list;
pub(crate) mod routes;
mod show;

use crate::api::App;
use crate::reply::Failure;
use turnstone_domain::JobId;
use turnstone_domain::job::AgentJob;
use turnstone_domain::principal::{Principal, SUBMITTED_BY, have_one_name};
use turnstone_domain::review::{Review, SeparateDuties};
use turnstone_ojs::OjsError;

/// Refuses an answer by the principal that submitted the reviewed job, where duties are separate.
///
/// # Errors
/// 403; the error of the store.
pub(crate) async fn check_duties(app: &App, review: &Review, principal: &Principal) -> Result<(), Failure> {
    check_submitter(app, &review.job_id, principal).await
}

/// Refuses to let the principal that submitted a job approve its calls, where duties are separate.
///
/// # Errors
/// 403; the error of the store.
pub(crate) async fn check_submitter(app: &App, job: &JobId, principal: &Principal) -> Result<(), Failure> {
    let duties = &app.api.options.separate_duties;
    let Some(identity) = principal.identity.as_deref().filter(|_| !duties.are_none()) else {
        return Ok(());
    };
    let Some(found) = app.api.store.views.job(job).await? else { return Ok(()) };
    let submitted = found.envelope.meta.get(SUBMITTED_BY).and_then(|by| by.parse::<String>().ok());
    let is_own = submitted.as_deref().is_some_and(|submitter| have_one_name(submitter, identity));
    if !is_own || !applies(app, duties, found.agent.as_ref()).await? {
        return Ok(());
    }
    let message = format!("{identity} submitted the job {job}, and may not approve its calls.");
    let hint = "Let another principal answer: [reviews] separates the duties of this agent's jobs.";
    Err(OjsError::new(403, "forbidden", message, hint).into())
}

/// Returns true if duties are separate for the agent of a job.
async fn applies(app: &App, duties: &SeparateDuties, job: Option<&AgentJob>) -> Result<bool, Failure> {
    let Some(job) = job.filter(|_| !duties.of_all) else { return Ok(duties.of_all) };
    let found = app.api.store.views.engagement_of(&job.engagement_id, None).await?;
    Ok(found.is_some_and(|(_, agent, _)| duties.apply_to(&agent.name)))
}
