//! `GET /ojs/v1/jobs/{id}/progress` (OJS progress §4).

use super::shapes;
use crate::api::Shared;
use crate::reply::{self, Answer, Failure};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_domain::{JobId, RawJson, Timestamp};
use turnstone_ojs::OjsError;
use turnstone_store::Progress;

/// The progress of a job; a completed one has 1.
#[utoipa::path(
    get, path = "/ojs/v1/jobs/{id}/progress", tag = "workers",
    security(("tenant" = ["viewer"]), ("tenant" = ["worker"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "How far it is.", body = shapes::Progress)),
)]
pub(crate) async fn show_progress(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let job_id = tenant.job(&app, &id).await?;
    match app.api.store.remote.progress(&job_id, tenant.name()).await? {
        Some(progress) => Ok(reply::ok(&shown(&job_id, progress)?)),
        None => Err(OjsError::not_found("job", job_id.shown()).into()),
    }
}

/// Progress as clients see it.
pub(super) fn shown(job: &JobId, progress: Progress) -> Result<shapes::Progress, Failure> {
    let unreadable = |_| OjsError::internal("The progress cannot be read by this version.");
    let data = progress.data.map(RawJson::from_text).transpose().map_err(unreadable)?;
    #[expect(clippy::cast_precision_loss, reason = "it is at most a million")]
    let part = progress.millionths.map(|millionths| millionths as f64 / 1e6);
    Ok(shapes::Progress {
        job_id: job.to_string(),
        progress: part,
        message: progress.message,
        data,
        state: progress.job_state.as_str(),
        updated_at: progress.at.map(Timestamp::to_rfc3339),
    })
}
