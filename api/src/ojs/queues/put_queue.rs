//! `PUT /ojs/v1/queues/{name}`: the attestation policy and the settings of a queue.

use super::settings::{self, QueueRequest, queue_name};
use super::show_queue::{QueueDetail, detail};
use crate::api::Shared;
use crate::counts::StateCounts;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment};
use axum::extract::State;
use axum::http::StatusCode;
use turnstone_ojs::Fields;

/// Sets the given members and leaves the rest as it is; `null` removes a setting.
#[utoipa::path(
    put, path = "/ojs/v1/queues/{name}", tag = "queues",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The queue.", example = "receipts")),
    request_body = QueueRequest,
    responses(
        (status = 200, description = "It is set.", body = QueueDetail),
        (status = 201, description = "It is set, and the queue is new.", body = QueueDetail),
    ),
)]
pub(crate) async fn put_queue(
    State(app): State<Shared>,
    Segment(name): Segment,
    JsonBytes(body): JsonBytes,
) -> Answer {
    queue_name(&name)?;
    let sent = Fields::read_if_any(&body)?;
    let queues = &app.api.store.queues;
    let known = queues.queue(&name).await?;
    let change = settings::merged(&sent, &name, known.as_ref().map(|queue| &queue.config))?;
    let is_new = queues.configure(&name, change, app.api.clock.now()).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let counted = queues.counts(std::slice::from_ref(&name), None).await?;
    let counts = StateCounts::of_queue(&name, &counted);
    let known = queues.queue(&name).await?;
    Ok(reply::json(status, &detail(name, known, counts, None)))
}
