//! `PUT /ojs/v1/queues/{name}`: the attestation policy and the settings of a queue.

use super::settings::{self, queue_name};
use super::show_queue::{QueueDetail, detail};
use crate::api::Shared;
use crate::counts::StateCounts;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment};
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Map, Value};
use turnstone_ojs::{Fields, OjsError};
use utoipa::ToSchema;

/// The attestation policy and the settings of a queue.
#[derive(ToSchema)]
#[schema(example = json!({"name": "receipts", "attest_policy": {"required": true, "allowed_algorithms": ["ed25519"]}}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct QueueRequest {
    /// The queue, as in the path.
    name: Option<String>,
    /// The attestation that its jobs need: `required` and `allowed_algorithms`.
    attest_policy: Option<Map<String, Value>>,
    backpressure: Option<Map<String, Value>>,
    concurrency: Option<i64>,
    rate_limit: Option<Map<String, Value>>,
    /// How long ended jobs are kept: `completed`, `discarded`, `cancelled`.
    retention: Option<Map<String, Value>>,
}

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
    if sent.text("name")?.is_some_and(|other| other != name) {
        return Err(OjsError::invalid_request("name", "must be the queue that the path names").into());
    }
    let queues = &app.api.store.queues;
    let known = queues.queue(&name).await?;
    let change = settings::merged(&sent, known.as_ref().map(|queue| &queue.config))?;
    let is_new = queues.configure(&name, change, app.api.clock.now()).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let counted = queues.counts(std::slice::from_ref(&name), None).await?;
    let counts = StateCounts::of_queue(&name, &counted);
    let known = queues.queue(&name).await?;
    Ok(reply::json(status, &detail(name, known, counts)))
}
