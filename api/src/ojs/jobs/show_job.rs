//! `GET /ojs/v1/jobs/{id}` (OJS HTTP binding §5.2). Has no effect: two reads of an unchanged job are equal.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_domain::JobId;
use turnstone_ojs::{JobReply, OjsError};

/// One job. Two reads of an unchanged job are equal.
#[utoipa::path(
    get, path = "/ojs/v1/jobs/{id}", operation_id = "show_job", tag = "jobs",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "The job.", body = JobReply)),
)]
pub(crate) async fn show_job(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    match app.api.store.views.job_of(&JobId::from(id.as_str()), tenant.name()).await? {
        Some(job) => Ok(reply::ok(&JobReply::from(&job))),
        None => Err(OjsError::not_found("job", &id).into()),
    }
}
