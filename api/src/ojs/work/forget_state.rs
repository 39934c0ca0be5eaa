//! `DELETE /ojs/v1/jobs/{id}/checkpoint` (OJS durable execution §4).

use super::shapes;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::OjsError;

/// Deletes the saved state. Without one there is nothing to delete, and that is no error.
#[utoipa::path(
    delete, path = "/ojs/v1/jobs/{id}/checkpoint", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "Nothing is kept any more.", body = shapes::Forgotten)),
)]
pub(crate) async fn forget_state(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let job_id = tenant.job(&app, &id).await?;
    if !app.api.store.remote.forget_state(&job_id, tenant.name()).await? {
        return Err(OjsError::not_found("job", job_id.shown()).into());
    }
    Ok(reply::ok(&shapes::Forgotten { job_id: job_id.to_string(), deleted: true }))
}
