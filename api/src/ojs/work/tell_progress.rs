//! `PUT /ojs/v1/jobs/{id}/progress` (OJS progress §3).

use super::{outcome, shapes, show_progress};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, LeaseToken, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::RawJson;
use turnstone_ojs::work::ProgressBody;
use turnstone_store::{LeasedJob, NewProgress};

/// Reports the progress of an active job, and renews its reservation. Within an attempt progress never decreases. A job
/// that is not active keeps its value.
#[utoipa::path(
    put, path = "/ojs/v1/jobs/{id}/progress", tag = "workers",
    security(("tenant" = ["worker"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),
    ),
    request_body = ProgressBody,
    responses(
        (status = 200, description = "How far it is.", body = shapes::Progress),
        (status = 409, description = "The lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn tell_progress(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    token: LeaseToken,
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
    let token = token.or(body.ext_lease_token)?;
    let job = LeasedJob { job: job_id.clone(), tenant: tenant.into_name(), token };
    let reply = app.api.store.remote.tell_progress(job, reported, at).await?;
    let progress = outcome::done(reply, &job_id, "cannot report its progress")?;
    Ok(reply::ok(&show_progress::shown(&job_id, progress)?))
}
