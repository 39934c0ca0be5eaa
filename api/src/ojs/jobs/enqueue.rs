//! `POST /ojs/v1/jobs`: accept a job. 201 is answered only after it is durable (OJS HTTP binding §5.1).

use super::super::queues::pressure;
use super::accept::accept;
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, RequestId, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, LOCATION};
use serde_json::Value;
use turnstone_domain::terms::OnConflict;
use turnstone_domain::{Job, NewJob};
use turnstone_ojs::{OjsError, accepted, agent_fields, body, job_reply};
use turnstone_store::Pushed;

/// Accepts a job. It is durable when 201 is answered.
#[utoipa::path(
    post, path = "/ojs/v1/jobs", tag = "jobs",
    params(
        ("X-OJS-Tenant" = Option<String>, Header, description = "Whose job it is."),
        ("X-Request-Id" = Option<String>, Header, description = "Kept in the job's meta.request_id."),
    ),
    request_body(content = docs::Enqueue, content_type = "application/openjobspec+json"),
    responses(
        (status = 201, description = "The job is accepted.", body = docs::JobReply,
         content_type = "application/openjobspec+json"),
        (status = 200, description = "Another job stands for it (unique jobs, on_conflict ignore), and is answered with deduplicated true.",
         body = docs::JobReply, content_type = "application/openjobspec+json"),
    ),
)]
pub(crate) async fn enqueue(
    State(app): State<Shared>,
    tenant: Tenant,
    request: RequestId,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let mut fields = body::read_object(&body)?;
    request.keep(&mut fields);
    let job = accept(&app, fields, tenant.name(), app.api.clock.now()).await?;
    let misfit = app.schemas.warning(&app, &job).await?;
    let remarks = job.envelope.extra.names().filter_map(agent_fields::remark);
    let misfit = misfit.map(|misfit| format!("args do not fit their schema: {misfit}"));
    let warnings: Vec<String> = misfit.into_iter().chain(remarks).collect();
    let pushed = app.api.store.intake.push(vec![job.clone()]).await?.pop();
    let pushed = pushed.ok_or_else(|| OjsError::internal("The store did not say what became of the job."))?;
    let (queue, terms) = (job.queue.clone(), job.terms.clone());
    let location = HeaderValue::from_str(&format!("/ojs/v1/jobs/{}", pushed.id));
    let mut reply = job_reply(&stored(&app, job, &pushed).await?);
    let status = match pushed.deduplicated {
        true => {
            reply.insert("deduplicated", true);
            StatusCode::OK
        }
        false => StatusCode::CREATED,
    };
    if !warnings.is_empty() {
        reply.insert("warnings", Value::from(warnings));
    }
    let mut response = reply::json(status, &reply);
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    pressure::tell(&app, response.headers_mut(), (&queue, &terms), &pushed).await?;
    Ok(response)
}

/// The job as it stands now. The store is asked again only where it may differ from what was sent.
pub(super) async fn stored(app: &App, job: NewJob, pushed: &Pushed) -> Result<Job, Failure> {
    let keeps_schedule = OnConflict::ReplaceExceptSchedule;
    let moved = job.terms.unique.as_ref().is_some_and(|unique| unique.on_conflict == keeps_schedule);
    if !pushed.deduplicated && !moved {
        return Ok(accepted(job, pushed.state));
    }
    as_it_stands(app, pushed).await
}

/// The job as the store has it.
pub(super) async fn as_it_stands(app: &App, pushed: &Pushed) -> Result<Job, Failure> {
    let found = app.api.store.views.job(&pushed.id).await?;
    Ok(found.ok_or_else(|| OjsError::not_found("job", pushed.id.as_str()))?)
}
