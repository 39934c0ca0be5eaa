//! `PUT /ojs/v1/jobs/{id}/progress` (OJS progress §3).

use super::{shapes, show_progress};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::RawJson;
use turnstone_ojs::OjsError;
use turnstone_ojs::work::ProgressBody;
use turnstone_store::NewProgress;

/// Reports the progress of an active job, and renews its reservation. Within an attempt progress never decreases. A job
/// that is not active keeps its value.
#[utoipa::path(
    put, path = "/ojs/v1/jobs/{id}/progress", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("id" = String, Path, description = "The job.")),
    request_body = ProgressBody,
    responses((status = 200, description = "How far it is.", body = shapes::Progress)),
)]
pub(crate) async fn tell_progress(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let body = ProgressBody::read(&body)?;
    let (job_id, at) = (tenant.job(&app, &id).await?, app.api.clock.now());
    let reported = NewProgress {
        millionths: body.millionths(),
        message: body.message,
        data: body.data.map(RawJson::into_text),
        state: body.checkpoint.map(RawJson::into_text),
    };
    match app.api.store.remote.tell_progress(&job_id, tenant.name(), reported, at).await? {
        Some(progress) => Ok(reply::ok(&show_progress::shown(&job_id, progress)?)),
        None => Err(OjsError::not_found("job", job_id.shown()).into()),
    }
}
