//! `POST /ojs/v1/workers/nack` and `POST /ojs/v1/jobs/{id}/nack` (OJS HTTP binding §5.6).

use super::{outcome, shapes};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, LeaseToken, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::{JobId, JobState, Timestamp};
use turnstone_ojs::work::NackBody;
use turnstone_ojs::{JobBody, OjsError, request};
use turnstone_store::{Report, ReportedEnd};

/// Reports that an active job failed, or gives it back. Its retry policy decides what follows.
#[utoipa::path(
    post, path = "/ojs/v1/workers/nack", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),),
    request_body = NackBody,
    responses(
        (status = 200, description = "The job is retryable, discarded, or available again.", body = shapes::Nacked),
        (status = 409, description = "The job is not active, another worker holds it, or the lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn nack(
    State(app): State<Shared>,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let body: NackBody = request::read_if_any(&body)?;
    let job = body.job_id.clone().ok_or_else(|| OjsError::invalid_request("job_id", "is missing"))?;
    fail(&app, job.into(), (tenant, token), body).await
}

/// Reports that an active job failed, or gives it back. Its retry policy decides what follows.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/{id}/nack", tag = "workers",
    security(("tenant" = ["worker"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),
    ),
    request_body = NackBody,
    responses(
        (status = 200, description = "The job is retryable, discarded, or available again.", body = shapes::Nacked),
        (status = 409, description = "The job is not active, another worker holds it, or the lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn nack_job(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    fail(&app, id.into(), (tenant, token), request::read_if_any(&body)?).await
}

async fn fail(app: &App, job: JobId, (tenant, token): (Tenant, LeaseToken), body: NackBody) -> Answer {
    let (worker, token) = (body.worker_id.clone(), token.or(body.ext_lease_token.clone())?);
    let end = body.failure()?.map_or(ReportedEnd::Back, |error| ReportedEnd::Failed { error });
    let at = app.api.clock.now();
    let report = Report { job: job.clone(), worker, tenant: tenant.into_name(), token, end, at };
    let outcome = app.api.store.remote.report(report).await?;
    let job = outcome::done(outcome, &job, "cannot be reported as failed")?;
    let (next_at, ended_at) = match job.state {
        JobState::Retryable => (Some(job.run_at), None),
        JobState::Discarded => (None, Some(job.ended_at.unwrap_or(at))),
        _ => (Some(at), None),
    };
    let ended_at = ended_at.map(Timestamp::to_rfc3339);
    Ok(reply::ok(&shapes::Nacked {
        id: job.id.to_string(),
        job_id: job.id.to_string(),
        state: job.state.as_str(),
        attempt: job.attempt,
        max_attempts: job.retry.max_attempts.into(),
        next_attempt_at: next_at.map(Timestamp::to_rfc3339),
        retry_delay_ms: (job.state == JobState::Retryable).then_some(job.retry_delay_ms),
        discarded_at: ended_at.clone(),
        completed_at: ended_at,
        job: JobBody::from(&*job),
    }))
}
