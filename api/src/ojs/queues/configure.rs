//! `PUT /ojs/v1/admin/queues/{name}/config`: bounds, limits and retention of a queue (OJS backpressure, rate limiting).

use super::settings::{self, QueueConfig, queue_name};
use super::show_queue::{QueueDetail, detail};
use crate::api::Shared;
use crate::counts::StateCounts;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment};
use axum::extract::State;
use turnstone_ojs::Fields;

/// Sets bounds, limits and retention of a queue in place of those it had. The queue need not exist yet.
#[utoipa::path(
    put, path = "/ojs/v1/admin/queues/{name}/config", tag = "queues",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    request_body = QueueConfig,
    responses((status = 200, description = "It is set.", body = QueueDetail)),
)]
pub(crate) async fn configure(
    State(app): State<Shared>,
    Segment(name): Segment,
    JsonBytes(body): JsonBytes,
) -> Answer {
    queue_name(&name)?;
    let change = settings::replaced(&Fields::read(&body)?)?;
    let queues = &app.api.store.queues;
    queues.configure(&name, change, app.api.clock.now()).await?;
    let counted = queues.counts(std::slice::from_ref(&name), None).await?;
    let counts = StateCounts::of_queue(&name, &counted);
    let known = queues.queue(&name).await?;
    Ok(reply::ok(&detail(name, known, counts, None)))
}
