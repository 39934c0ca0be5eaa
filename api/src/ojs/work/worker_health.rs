//! `GET /ojs/v1/workers/{id}/health` (OJS graceful shutdown §5).

use super::shapes;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::Segment;
use axum::extract::State;
use turnstone_ojs::OjsError;
use turnstone_store::WorkerState;

/// The health of a worker, from its last report.
#[utoipa::path(
    get, path = "/ojs/v1/workers/{id}/health", tag = "workers",
    security(("fleet" = ["viewer"])),
    params(("id" = String, Path, description = "The worker.")),
    responses(
        (status = 200, description = "It works, finishes what it has, or has been silent for too long: `state` says so.", body = shapes::Health),
        (status = 404, description = "No worker of this name has sent a heartbeat.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn worker_health(State(app): State<Shared>, Segment(id): Segment) -> Answer {
    let workers = app.api.store.views.workers().await?;
    let Some(worker) = workers.into_iter().find(|worker| worker.name == id) else {
        return Err(OjsError::not_found("worker", &id).into());
    };
    let (state, status) = match worker.state {
        _ if !worker.is_alive(app.api.clock.now()) => ("silent", "unhealthy"),
        WorkerState::Draining => ("draining", "degraded"),
        WorkerState::Running => ("running", "ok"),
    };
    Ok(reply::ok(&shapes::Health {
        worker_id: worker.name,
        state,
        status,
        last_seen_at: worker.seen_at.to_rfc3339(),
        active_jobs: worker.busy,
    }))
}
