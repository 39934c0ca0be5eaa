//! `POST /ojs/v1/jobs`: accepts a job. The response is 201 only after the job is durable (OJS HTTP binding §5.1).
//!
//! The body is read and checked in `accept`; the store pushes the job; then the response is built from the request, without
//! another read. The store is read again only if the stored job may differ from the request. With an `Idempotency-Key` the
//! body of the response is recorded, in the transaction of the push if possible.

use super::super::queues::pressure;
use super::accept::accept;
use super::idempotency::{IdempotencyKey, KeyedRequest};
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, RequestId, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, LOCATION};
use axum::response::Response;
use serde::Serialize;
use turnstone_domain::terms::OnConflict;
use turnstone_domain::{Job, NewJob};
use turnstone_ojs::{Enqueue, JobReply, OjsError, accepted, agent_fields, body};
use turnstone_store::{Pushed, RecordedPush};
use utoipa::ToSchema;

/// A job that was enqueued.
#[derive(Serialize, ToSchema)]
struct EnqueuedJob {
    #[serde(flatten)]
    reply: JobReply,
    /// True if an equal job existed, and no job was added.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deduplicated: bool,
    /// Remarks about members that have no effect, and about arguments that do not fit their schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Accepts a job. It is durable when the response is 201.
#[utoipa::path(
    post, path = "/ojs/v1/jobs", tag = "jobs",
    security(("tenant" = ["submitter"])),
    params(
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the job."),
        ("X-Request-Id" = Option<String>, Header, description = "Kept in the job's meta.request_id."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 255,
         description = "For 24 hours a request with the same key and body adds no second job and gets the same response. The same key with another body is 409."),
    ),
    request_body = Enqueue,
    responses(
        (status = 201, description = "The job is accepted.", body = EnqueuedJob),
        (status = 200, description = "An equal job exists (unique jobs, on_conflict ignore). No job is added; the response has the existing one, with deduplicated true.",
         body = EnqueuedJob),
    ),
)]
pub(crate) async fn enqueue(
    State(app): State<Shared>,
    tenant: Tenant,
    request: RequestId,
    key: IdempotencyKey,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let key = key.of(&app, "POST /ojs/v1/jobs", &body);
    if let Some(key) = &key
        && let Some(recorded) = key.recorded(&app).await?
    {
        return repeated(&app, key, recorded).await;
    }
    // A job whose fields are wrong is refused here; remarkable ones only cause warnings in the response.
    let mut fields = body::read_object(&body)?;
    request.keep(&mut fields);
    let job = accept(&app, fields, &tenant, app.api.clock.now()).await?;
    let misfit = app.schemas.warning(&job).await?;
    let remarks = job.envelope.extra.names().filter_map(agent_fields::remark);
    let misfit = misfit.map(|misfit| format!("args do not fit their schema: {misfit}"));
    let warnings: Vec<String> = misfit.into_iter().chain(remarks).collect();
    let (queue, terms) = (job.queue.clone(), job.terms.clone());
    let (pushed, body) = match &key {
        None => {
            let pushed = one(app.api.store.intake.push(vec![job.clone()]).await?)?;
            let body = text(&stored(&app, job, &pushed).await?, &pushed, &warnings)?;
            (pushed, body)
        }
        Some(key) => {
            let (sent, warned) = (job.clone(), warnings.clone());
            // Called in the transaction of the push. It makes the body to record, unless that needs a read of the store.
            let body_at_push = move |pushed: &[Pushed]| {
                let pushed = pushed.first().filter(|pushed| stands_as_sent(&sent, pushed))?;
                text(&accepted(sent.clone(), pushed.state), pushed, &warned).ok()
            };
            let recorded = key.check(key.push(&app, vec![job.clone()], body_at_push).await?)?;
            if recorded.repeated {
                return repeated(&app, key, recorded).await;
            }
            let pushed = one(recorded.pushed)?;
            let body = match recorded.answer {
                Some(body) => body,
                None => {
                    key.record(&app, text(&stored(&app, job, &pushed).await?, &pushed, &warnings)?).await?
                }
            };
            (pushed, body)
        }
    };
    let mut response = answer(&pushed, body);
    pressure::add_headers(&app, response.headers_mut(), (&queue, &terms), &pushed).await?;
    Ok(response)
}

/// Returns the recorded response of a request that was applied before. A crash may have prevented its record; then it is
/// made from the job as it is now.
async fn repeated(app: &App, key: &KeyedRequest, recorded: RecordedPush) -> Answer {
    let pushed = one(recorded.pushed)?;
    let body = match recorded.answer {
        Some(body) => body,
        None => key.record(app, text(&as_it_stands(app, &pushed).await?, &pushed, &[])?).await?,
    };
    Ok(answer(&pushed, body))
}

fn one(pushed: Vec<Pushed>) -> Result<Pushed, Failure> {
    let pushed = pushed.into_iter().next();
    Ok(pushed.ok_or_else(|| OjsError::internal("The store returned no outcome for the job."))?)
}

fn text(job: &Job, pushed: &Pushed, warnings: &[String]) -> Result<String, Failure> {
    let (deduplicated, warnings) = (pushed.deduplicated, warnings.to_vec());
    reply::text(&EnqueuedJob { reply: job.into(), deduplicated, warnings })
}

fn answer(pushed: &Pushed, body: String) -> Response {
    let status = if pushed.deduplicated { StatusCode::OK } else { StatusCode::CREATED };
    let mut response = reply::json_text(status, body);
    if let Ok(location) = HeaderValue::from_str(&format!("/ojs/v1/jobs/{}", pushed.id)) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Returns true if the stored job equals the one of the request, so that the store need not be read again.
pub(super) fn stands_as_sent(job: &NewJob, pushed: &Pushed) -> bool {
    let keeps_schedule = OnConflict::ReplaceExceptSchedule;
    let moved = job.terms.unique.as_ref().is_some_and(|unique| unique.on_conflict == keeps_schedule);
    !pushed.deduplicated && !moved
}

/// Returns the job as it is now. The store is read again only where it may differ from the request.
pub(super) async fn stored(app: &App, job: NewJob, pushed: &Pushed) -> Result<Job, Failure> {
    if stands_as_sent(&job, pushed) {
        return Ok(accepted(job, pushed.state));
    }
    as_it_stands(app, pushed).await
}

/// Returns the job from the store.
pub(super) async fn as_it_stands(app: &App, pushed: &Pushed) -> Result<Job, Failure> {
    let found = app.api.store.views.job(&pushed.id).await?;
    Ok(found.ok_or_else(|| OjsError::not_found("job", pushed.id.shown()))?)
}
