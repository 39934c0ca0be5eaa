//! `GET /ojs/v1/jobs/{id}/result`: the result of a job, without the rest of it.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::{JobId, JobState, RawJson};
use turnstone_ojs::{FailureRecord, JobBody, OjsError, OpenValue};
use utoipa::ToSchema;

/// The result of a job.
#[derive(Serialize, ToSchema)]
pub(super) struct JobResult {
    job_id: String,
    #[schema(value_type = String, example = "completed")]
    state: OpenValue<JobState>,
    /// As the worker sent it; null while there is none.
    #[schema(value_type = Value)]
    result: Option<RawJson>,
    /// Why its latest attempt failed; null when it did not.
    error: Option<FailureRecord>,
    completed_at: Option<String>,
}

/// The result of a job so far, or why its latest attempt failed.
#[utoipa::path(
    get, path = "/ojs/v1/jobs/{id}/result", tag = "jobs",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "The result.", body = JobResult)),
)]
pub(crate) async fn show_result(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let job = app.api.store.views.job_of(&JobId::from(id.as_str()), tenant.name()).await?;
    let shown = JobBody::from(&job.ok_or_else(|| OjsError::not_found("job", &id))?);
    let JobBody { state, result, error, completed_at, .. } = shown;
    Ok(reply::ok(&JobResult { job_id: id, state, result, error, completed_at }))
}
