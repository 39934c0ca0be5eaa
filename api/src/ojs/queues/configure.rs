//! `PUT /ojs/v1/admin/queues/{name}/config`: bounds, limits and retention of a queue (OJS backpressure, rate limiting).

use super::settings::{self, queue_name};
use super::show_queue::{QueueDetail, detail};
use crate::api::Shared;
use crate::counts::StateCounts;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment};
use axum::extract::State;
use serde_json::{Map, Value};
use turnstone_ojs::Fields;
use utoipa::ToSchema;

/// The bounds and limits of a queue.
#[derive(ToSchema)]
#[schema(example = json!({"backpressure": {"max_depth": 10000, "strategy": "reject", "warning_threshold": 0.8},
                          "concurrency": 20, "rate_limit": {"max_per_second": 50}}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct QueueConfig {
    backpressure: Option<Backpressure>,
    /// At most this many jobs are active.
    concurrency: Option<i64>,
    /// `max_per_second`, or `rate` and `period`, or `throttle`.
    rate_limit: Option<Map<String, Value>>,
    /// How long ended jobs are kept, by state: `completed`, `discarded`, `cancelled`, each an ISO 8601 duration or seconds.
    retention: Option<Map<String, Value>>,
}

/// The bounds of a queue.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Backpressure {
    /// Available, scheduled and retryable jobs, at most.
    #[schema(minimum = 0)]
    max_depth: Option<i64>,
    /// Their payloads together, at most.
    #[schema(minimum = 0)]
    max_size_bytes: Option<i64>,
    /// `reject`, or `block`, which over HTTP is the same: the response contains the time of the next try.
    strategy: Option<String>,
    /// The threshold from which responses contain the depth of the queue: a part of `max_depth` up to 1, or a number of
    /// jobs.
    warning_threshold: Option<f64>,
}

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
    Ok(reply::ok(&detail(name, known, counts)))
}
