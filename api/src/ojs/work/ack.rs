//! `POST /ojs/v1/workers/ack` and `POST /ojs/v1/jobs/{id}/ack` (OJS HTTP binding §5.5).

use super::{outcome, shapes};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, LeaseToken, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::{JobId, RawJson};
use turnstone_ojs::work::AckBody;
use turnstone_ojs::{JobBody, OjsError, request};
use turnstone_store::{Report, ReportedEnd};

/// Completes an active job. Its result is durable when this returns.
#[utoipa::path(
    post, path = "/ojs/v1/workers/ack", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),),
    request_body = AckBody,
    responses(
        (status = 200, description = "The job is completed.", body = shapes::Acknowledged),
        (status = 409, description = "The job is not active, another worker holds it, or the lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn ack(
    State(app): State<Shared>,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let body: AckBody = request::read_if_any(&body)?;
    let job = body.job_id.clone().ok_or_else(|| OjsError::invalid_request("job_id", "is missing"))?;
    complete(&app, job.into(), (tenant, token), body).await
}

/// Completes an active job. Its result is durable when this returns.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/{id}/ack", tag = "workers",
    security(("tenant" = ["worker"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),
    ),
    request_body = AckBody,
    responses(
        (status = 200, description = "The job is completed.", body = shapes::Acknowledged),
        (status = 409, description = "The job is not active, another worker holds it, or the lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn ack_job(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    complete(&app, id.into(), (tenant, token), request::read_if_any(&body)?).await
}

async fn complete(app: &App, job: JobId, (tenant, token): (Tenant, LeaseToken), body: AckBody) -> Answer {
    let end = ReportedEnd::Done { result: body.result.unwrap_or_else(RawJson::null) };
    let at = app.api.clock.now();
    let (worker, token) = (body.worker_id, token.or(body.ext_lease_token)?);
    let report = Report { job: job.clone(), worker, tenant: tenant.into_name(), token, end, at };
    let outcome = app.api.store.remote.report(report).await?;
    let job = outcome::done(outcome, &job, "cannot be acknowledged")?;
    Ok(reply::ok(&shapes::Acknowledged {
        acknowledged: true,
        id: job.id.to_string(),
        job_id: job.id.to_string(),
        state: job.state.as_str(),
        completed_at: job.ended_at.unwrap_or(at).to_rfc3339(),
        job: JobBody::from(&*job),
    }))
}
