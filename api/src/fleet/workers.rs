//! `GET /workers`: the workers of the fleet by name, including silent ones that did not leave.

use crate::api::Shared;
use crate::reply::{self, Answer};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::Timestamp;
use turnstone_store::{Directive, WorkerBeat};
use utoipa::ToSchema;

/// A worker of the fleet.
#[derive(Serialize, ToSchema)]
#[schema(as = FleetWorker)]
struct Worker {
    name: String,
    instance: String,
    host: String,
    pid: i64,
    version: String,
    /// `*` means all.
    queues: Vec<String>,
    slots: i64,
    busy: i64,
    /// running or draining.
    state: &'static str,
    started_at: String,
    seen_at: String,
    /// own, or http for a worker in any language.
    kind: &'static str,
    /// The directive of an operator: quiet or terminate.
    directive: Option<&'static str>,
    /// True if its last heartbeat is recent.
    alive: bool,
}

impl Worker {
    fn of(worker: WorkerBeat, now: Timestamp) -> Self {
        Self {
            alive: worker.is_alive(now),
            name: worker.name,
            instance: worker.instance,
            host: worker.host,
            pid: worker.pid,
            version: worker.version,
            queues: worker.queues,
            slots: worker.slots,
            busy: worker.busy,
            state: worker.state.as_str(),
            started_at: worker.started_at.to_rfc3339(),
            seen_at: worker.seen_at.to_rfc3339(),
            kind: worker.kind.as_str(),
            directive: worker.directive.map(Directive::as_str),
        }
    }
}

/// The workers of the fleet, by name, including silent ones that did not leave.
#[utoipa::path(
    get, path = "/workers", operation_id = "list_workers", tag = "fleet",
    security(("fleet" = ["viewer"])),
    responses((status = 200, description = "The workers.", body = [Worker])),
)]
pub(crate) async fn list(State(app): State<Shared>) -> Answer {
    let workers = app.api.store.views.workers().await?;
    let now = app.api.clock.now();
    Ok(reply::ok(&workers.into_iter().map(|worker| Worker::of(worker, now)).collect::<Vec<_>>()))
}
