//! `GET /ojs/v1/jobs/{id}/checkpoint` (OJS durable execution §4).

use super::{outcome, shapes};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{LeaseToken, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::job::SavedState;
use turnstone_domain::{JobId, RawJson};
use turnstone_ojs::OjsError;
use turnstone_store::LeasedJob;

/// The state that the job's worker saved last, also when the job has ended.
#[utoipa::path(
    get, path = "/ojs/v1/jobs/{id}/checkpoint", tag = "workers",
    security(("tenant" = ["viewer"]), ("tenant" = ["worker"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, as the job was fetched with it."),
    ),
    responses(
        (status = 200, description = "What is kept.", body = shapes::SavedStateReply),
        (status = 409, description = "The lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
        (status = 404, description = "Nothing is kept, or there is no such job.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn show_state(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    LeaseToken(token): LeaseToken,
) -> Answer {
    let job_id = JobId(id);
    let Some(job) = app.api.store.views.job_of(&job_id, tenant.name()).await? else {
        return Err(OjsError::not_found("job", job_id.as_str()).into());
    };
    let about = LeasedJob { job: job_id.clone(), tenant: tenant.into_name(), token };
    if !app.api.store.remote.is_current(&about).await? {
        return Err(outcome::stale(&job_id, "does not show its state").into());
    }
    let saved = job.saved.ok_or_else(|| OjsError::not_found("checkpoint of job", job_id.as_str()))?;
    Ok(reply::ok(&shown(&job_id, &saved)?))
}

/// Returns a saved state as clients see it.
pub(super) fn shown(job: &JobId, saved: &SavedState) -> Result<shapes::SavedStateReply, Failure> {
    let unreadable = |_| OjsError::internal("The saved state cannot be read by this version.");
    let flat = shapes::ShownState {
        job_id: job.to_string(),
        state: RawJson::from_text(saved.state.clone()).map_err(unreadable)?,
        sequence: saved.sequence,
        created_at: saved.at.to_rfc3339(),
    };
    Ok(shapes::SavedStateReply { checkpoint: flat.clone(), flat })
}
