//! `POST /ojs/v1/jobs/{id}/activate` (OJS core §5.2).

use super::{outcome, shapes};
use crate::api::Shared;
use crate::docs;
use crate::principals::work;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_domain::JobState;
use turnstone_domain::principal::WorkKind;
use turnstone_ojs::JobReply;

/// Activates a job that waits in `pending`.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/{id}/activate", tag = "jobs",
    security(("tenant" = ["submitter"]), ("tenant" = ["worker"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses(
        (status = 200, description = "It is available.", body = shapes::Activated),
        (status = 409, description = "It does not wait, or waits for an answer to a review.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn activate(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let (id, at) = (tenant.job(&app, &id).await?, app.api.clock.now());
    work::check_job(&app, &id, &tenant, WorkKind::Unchanged).await?;
    let outcome = app.api.store.remote.activate(&id, tenant.name(), at).await?;
    let job = outcome::done(outcome, &id, "cannot be activated")?;
    let reply = JobReply::from(&*job).beside(&["activated_at", "previous_state"]);
    let activated_at = at.to_rfc3339();
    Ok(reply::ok(&shapes::Activated { reply, activated_at, previous_state: JobState::Pending }))
}
