//! `GET /workers`: the workers of the fleet by name, including silent ones that did not leave.

use crate::api::Shared;
use crate::reply::{self, Answer};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::Timestamp;
use turnstone_store::WorkerBeat;
use utoipa::ToSchema;

/// A worker of the fleet.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = FleetWorker)]
pub struct Worker {
    /// Its name.
    pub name: String,
    instance: String,
    /// The name of its host.
    pub host: String,
    /// The id of its process.
    pub pid: i64,
    /// The version of Turnstone.
    pub version: String,
    /// `*` means all.
    pub queues: Vec<String>,
    /// The most jobs at once.
    pub slots: i64,
    /// The jobs that it runs.
    pub busy: i64,
    /// running or draining.
    pub state: String,
    /// When it began.
    pub started_at: String,
    /// When its last heartbeat arrived.
    pub seen_at: String,
    /// own, or http for a worker in any language.
    kind: String,
    /// The directive of an operator: quiet or terminate.
    directive: Option<String>,
    /// True if its last heartbeat is recent.
    pub alive: bool,
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
            state: worker.state.as_str().to_owned(),
            started_at: worker.started_at.to_rfc3339(),
            seen_at: worker.seen_at.to_rfc3339(),
            kind: worker.kind.as_str().to_owned(),
            directive: worker.directive.map(|directive| directive.as_str().to_owned()),
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
