//! `POST /ojs/v1/workers/nack` and `POST /ojs/v1/jobs/{id}/nack` (OJS HTTP binding §5.6).

use super::{outcome, shapes};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::{JobId, JobState, RawObject};
use turnstone_ojs::work::NackBody;
use turnstone_ojs::{OjsError, job_to_json};
use turnstone_store::{Report, ReportedEnd};

/// Reports that an active job failed, or gives it back. Its retry policy decides what follows.
#[utoipa::path(
    post, path = "/ojs/v1/workers/nack", tag = "workers",
    security(("tenant" = ["worker"])),
    request_body = shapes::Nack,
    responses(
        (status = 200, description = "The job is retryable, discarded, or available again.", body = shapes::Nacked),
        (status = 409, description = "The job is not active, or another worker holds it.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn nack(State(app): State<Shared>, tenant: Tenant, JsonBytes(body): JsonBytes) -> Answer {
    let body = NackBody::read(&body)?;
    let job = body.job.clone().ok_or_else(|| OjsError::invalid_request("job_id", "is missing"))?;
    fail(&app, job.into(), tenant, body).await
}

/// Reports that an active job failed, or gives it back. Its retry policy decides what follows.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/{id}/nack", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("id" = String, Path, description = "The job.")),
    request_body = shapes::Nack,
    responses(
        (status = 200, description = "The job is retryable, discarded, or available again.", body = shapes::Nacked),
        (status = 409, description = "The job is not active, or another worker holds it.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn nack_job(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    fail(&app, id.into(), tenant, NackBody::read(&body)?).await
}

async fn fail(app: &App, job: JobId, tenant: Tenant, body: NackBody) -> Answer {
    let end = body.error.map_or(ReportedEnd::Back, |error| ReportedEnd::Failed { error });
    let at = app.api.clock.now();
    let report = Report { job: job.clone(), worker: body.worker, tenant: tenant.into_name(), end, at };
    let outcome = app.api.store.remote.report(report).await?;
    let job = outcome::done(outcome, &job, "cannot be reported as failed")?;
    let mut reply = RawObject::new();
    reply.insert("id", job.id.as_str());
    reply.insert("job_id", job.id.as_str());
    reply.insert("state", job.state.as_str());
    reply.insert("attempt", job.attempt);
    reply.insert("max_attempts", job.retry.max_attempts);
    match job.state {
        JobState::Retryable => {
            reply.insert("next_attempt_at", job.run_at.to_rfc3339());
            reply.insert("retry_delay_ms", job.retry_delay_ms);
        }
        JobState::Discarded => {
            let ended_at = job.ended_at.unwrap_or(at).to_rfc3339();
            reply.insert("discarded_at", ended_at.as_str());
            reply.insert("completed_at", ended_at);
        }
        _ => reply.insert("next_attempt_at", at.to_rfc3339()),
    }
    reply.insert("job", job_to_json(&job));
    Ok(reply::ok(&reply))
}
