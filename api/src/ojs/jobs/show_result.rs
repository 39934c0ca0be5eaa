//! `GET /ojs/v1/jobs/{id}/result`: the result of a job, without the rest of it.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde_json::Value;
use turnstone_domain::{JobId, RawJson, RawObject};
use turnstone_ojs::{OjsError, job_to_json};
use utoipa::ToSchema;

/// The result of a job.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct JobResult {
    job_id: String,
    #[schema(example = "completed")]
    state: String,
    /// As the worker sent it; null while there is none.
    result: Value,
    /// Why its latest attempt failed; null when it did not.
    error: Value,
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
    let shown = job_to_json(&job.ok_or_else(|| OjsError::not_found("job", &id))?);
    let mut out = RawObject::new();
    out.insert("job_id", id);
    for name in ["state", "result", "error", "completed_at"] {
        out.insert(name, shown.get(name).cloned().unwrap_or_else(RawJson::null));
    }
    Ok(reply::ok(&out))
}
