//! `POST /ojs/v1/queues/{name}/pause|resume`, and the same below `/admin` (OJS core §8.3): nothing in a paused queue is
//! claimed; enqueueing into it goes on.

use super::counts::Brief;
use super::settings::queue_name;
use crate::api::{App, Shared};
use crate::reply::{self, Answer};
use crate::request::Segment;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// A queue that was paused or resumed.
#[derive(Serialize, ToSchema)]
pub(super) struct PausedQueue {
    queue: Brief,
    #[schema(example = "default")]
    name: String,
    paused: bool,
    /// active or paused.
    status: &'static str,
}

/// Pauses a queue: workers pass it over until it is resumed.
#[utoipa::path(
    post, path = "/ojs/v1/queues/{name}/pause", tag = "queues",
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "It is paused.", body = PausedQueue, content_type = "application/openjobspec+json")),
)]
pub(crate) async fn pause(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    set(&app, name, true).await
}

/// Resumes a queue: its jobs are claimed in the order in which they would have been.
#[utoipa::path(
    post, path = "/ojs/v1/queues/{name}/resume", tag = "queues",
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "It is not paused.", body = PausedQueue, content_type = "application/openjobspec+json")),
)]
pub(crate) async fn resume(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    set(&app, name, false).await
}

/// The same as `/queues/{name}/pause`.
#[utoipa::path(
    post, path = "/ojs/v1/admin/queues/{name}/pause", tag = "queues",
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "It is paused.", body = PausedQueue, content_type = "application/openjobspec+json")),
)]
pub(crate) async fn pause_as_admin(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    set(&app, name, true).await
}

/// The same as `/queues/{name}/resume`.
#[utoipa::path(
    post, path = "/ojs/v1/admin/queues/{name}/resume", tag = "queues",
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "It is not paused.", body = PausedQueue, content_type = "application/openjobspec+json")),
)]
pub(crate) async fn resume_as_admin(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    set(&app, name, false).await
}

async fn set(app: &App, name: String, paused: bool) -> Answer {
    queue_name(&name)?;
    app.api.store.queues.pause(&name, paused, app.api.clock.now()).await?;
    let known = app.api.store.queues.queue(&name).await?;
    let queue = Brief::of(name.clone(), known.as_ref());
    let status = super::counts::status(paused);
    Ok(reply::json(StatusCode::OK, &PausedQueue { queue, name, paused, status }))
}
