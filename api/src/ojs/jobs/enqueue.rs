//! `POST /ojs/v1/jobs`: accept a job. 201 is answered only after it is durable (OJS HTTP binding §5.1).

use super::accept::accept;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::JsonBytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, LOCATION};
use turnstone_domain::JobState;
use turnstone_ojs::{accepted, body, job_reply};

/// Accepts a job. It is durable when 201 is answered.
#[utoipa::path(
    post, path = "/ojs/v1/jobs", tag = "jobs",
    request_body(content = docs::Enqueue, content_type = "application/openjobspec+json"),
    responses((status = 201, description = "The job is accepted.", body = docs::JobReply,
               content_type = "application/openjobspec+json")),
)]
pub(crate) async fn enqueue(State(app): State<Shared>, JsonBytes(body): JsonBytes) -> Answer {
    let job = accept(&app, body::read_object(&body)?, None, app.api.clock.now()).await?;
    let pushed = app.api.store.intake.push(vec![job.clone()]).await?;
    let state = pushed.first().map_or(JobState::Available, |pushed| pushed.state);
    let location = HeaderValue::from_str(&format!("/ojs/v1/jobs/{}", job.id));
    let mut response = reply::json(StatusCode::CREATED, &job_reply(&accepted(job, state)));
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}
