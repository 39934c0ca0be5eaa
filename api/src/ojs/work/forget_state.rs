//! `DELETE /ojs/v1/jobs/{id}/checkpoint` (OJS durable execution §4).

use super::{outcome, shapes};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{LeaseToken, Segment, Tenant};
use axum::extract::State;
use turnstone_store::LeasedJob;

/// Deletes the saved state. Without one there is nothing to delete, and that is no error.
#[utoipa::path(
    delete, path = "/ojs/v1/jobs/{id}/checkpoint", tag = "workers",
    security(("tenant" = ["worker"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, as the job was fetched with it."),
    ),
    responses(
        (status = 200, description = "Nothing is kept any more.", body = shapes::Forgotten),
        (status = 409, description = "The lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn forget_state(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    LeaseToken(token): LeaseToken,
) -> Answer {
    let job_id = tenant.job(&app, &id).await?;
    let job = LeasedJob { job: job_id.clone(), tenant: tenant.into_name(), token };
    let forgotten = app.api.store.remote.forget_state(job).await?;
    outcome::done(forgotten, &job_id, "cannot forget its state")?;
    Ok(reply::ok(&shapes::Forgotten { job_id: job_id.to_string(), deleted: true }))
}
