//! `GET /ojs/v1/admin/jobs/{id}`: one job, bare.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_domain::JobId;
use turnstone_ojs::{JobBody, OjsError};

/// One job, without a wrapper.
#[utoipa::path(
    get, path = "/ojs/v1/admin/jobs/{id}", operation_id = "admin_show_job", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "The job.", body = JobBody)),
)]
pub(crate) async fn show_job(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    match app.api.store.views.job_of(&JobId::from(id.as_str()), tenant.name()).await? {
        Some(job) => Ok(reply::ok(&JobBody::from(&job))),
        None => Err(OjsError::not_found("job", &id).into()),
    }
}
