//! `POST /ojs/v1/queues/{name}/pause|resume`, and the same below `/admin` (OJS core §8.3): nothing in a paused queue is
//! claimed; enqueueing into it continues.

use super::brief::Brief;
use super::settings::queue_name;
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::Segment;
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// A queue that was paused or resumed.
#[derive(Serialize, ToSchema)]
pub(crate) struct PausedQueue {
    /// The queue.
    pub queue: Brief,
    #[schema(example = "default")]
    name: String,
    paused: bool,
    /// active or paused.
    status: String,
}

/// Pauses a queue: workers skip it until it is resumed. A queue without jobs can be paused before its first one.
#[utoipa::path(
    post, path = "/ojs/v1/queues/{name}/pause", operation_id = "pause_queue", tag = "queues",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "It is paused.", body = PausedQueue)),
)]
pub(crate) async fn pause(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    set(&app, name, true).await
}

/// Resumes a queue: its jobs are claimed in their original order.
#[utoipa::path(
    post, path = "/ojs/v1/queues/{name}/resume", operation_id = "resume_queue", tag = "queues",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "It is not paused.", body = PausedQueue)),
)]
pub(crate) async fn resume(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    set(&app, name, false).await
}

/// Pauses a queue that is known, so that a misspelt name is noticed.
#[utoipa::path(
    post, path = "/ojs/v1/admin/queues/{name}/pause", tag = "queues",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses(
        (status = 200, description = "It is paused.", body = PausedQueue),
        (status = 404, description = "No queue has this name.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn pause_as_admin(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    known(&app, &name).await?;
    set(&app, name, true).await
}

/// Resumes a queue that is known.
#[utoipa::path(
    post, path = "/ojs/v1/admin/queues/{name}/resume", tag = "queues",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses(
        (status = 200, description = "It is not paused.", body = PausedQueue),
        (status = 404, description = "No queue has this name.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn resume_as_admin(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    known(&app, &name).await?;
    set(&app, name, false).await
}

async fn set(app: &App, name: String, paused: bool) -> Answer {
    queue_name(&name)?;
    app.api.store.queues.pause(&name, paused, app.api.clock.now()).await?;
    let known = app.api.store.queues.queue(&name).await?;
    let queue = Brief::of(name.clone(), known.as_ref(), None);
    let status = super::brief::status(paused).to_owned();
    Ok(reply::ok(&PausedQueue { queue, name, paused, status }))
}

/// Refuses an unknown queue: a misspelt name would pause nothing.
///
/// # Errors
/// 400 for a name that no queue can have, 404 for an unknown queue.
async fn known(app: &App, name: &str) -> Result<(), Failure> {
    queue_name(name)?;
    if app.api.store.queues.queue(name).await?.is_some() {
        return Ok(());
    }
    let hint = "GET /ojs/v1/queues lists the queues; a queue comes to be with its first job, or with PUT /ojs/v1/queues/{name}.";
    Err(OjsError { hint, ..OjsError::not_found("queue", name) }.into())
}
