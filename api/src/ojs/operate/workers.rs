//! `GET /ojs/v1/admin/workers`: workers over HTTP and our own.

use crate::api::Shared;
use crate::parts::PagePosition;
use crate::reply::{self, Answer};
use crate::request::Params;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::Timestamp;
use turnstone_ojs::OpenValue;
use turnstone_store::{Directive, WorkerBeat, WorkerKind, WorkerState};
use utoipa::ToSchema;

/// A worker.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkerItem {
    id: String,
    /// running; quiet, when it takes no further jobs; terminate, when it was directed to end; stale, when it is silent.
    pub state: String,
    /// own: it runs agent jobs; http: it runs plain jobs.
    #[schema(value_type = WorkerItemKind)]
    pub kind: OpenValue<WorkerItemKind>,
    /// Its directive.
    directive: Option<String>,
    /// `*` means all; workers over HTTP do not report them.
    pub queues: Vec<String>,
    active_jobs: i64,
    /// The most jobs at once; 0 when it does not report it.
    concurrency: i64,
    hostname: String,
    pid: i64,
    version: String,
    started_at: String,
    last_heartbeat_at: String,
}

/// The kind of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkerItemKind {
    /// One of our own, which runs jobs of agents.
    Own,
    /// A worker over HTTP, which runs plain jobs.
    Http,
}

/// How many workers there are.
#[derive(Serialize, ToSchema)]
pub(crate) struct WorkerSummary {
    total: usize,
    running: usize,
    quiet: usize,
    stale: usize,
}

/// Workers, by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct WorkerPage {
    items: Vec<WorkerItem>,
    summary: WorkerSummary,
    pagination: PagePosition,
}

/// Lists workers by name, including silent ones that did not leave.
#[utoipa::path(
    get, path = "/ojs/v1/admin/workers", operation_id = "admin_list_workers", tag = "admin",
    security(("fleet" = ["viewer"])),
    params(
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The workers.", body = WorkerPage)),
)]
pub(crate) async fn list(State(app): State<Shared>, params: Params) -> Answer {
    let (page, slice) = params.page()?;
    let (workers, now) = (app.api.store.views.workers().await?, app.api.clock.now());
    let of = |state: &str| workers.iter().filter(|worker| state_of(worker, now) == state).count();
    let (total, running, stale) = (workers.len(), of("running"), of("stale"));
    let summary = WorkerSummary { total, running, quiet: total - running - stale, stale };
    let part = workers.iter().skip(slice.offset as usize).take(slice.limit as usize);
    let items = part.map(|worker| item(worker, now)).collect();
    let pagination = PagePosition { total: total as u64, page, per_page: slice.limit };
    Ok(reply::ok(&WorkerPage { items, summary, pagination }))
}

fn state_of(worker: &WorkerBeat, now: Timestamp) -> &'static str {
    match (worker.is_alive(now), worker.directive, worker.state) {
        (false, ..) => "stale",
        (true, Some(Directive::Terminate), _) => "terminate",
        (true, Some(Directive::Quiet), _) | (true, None, WorkerState::Draining) => "quiet",
        (true, None, WorkerState::Running) => "running",
    }
}

fn item(worker: &WorkerBeat, now: Timestamp) -> WorkerItem {
    WorkerItem {
        id: worker.name.clone(),
        state: state_of(worker, now).to_owned(),
        kind: OpenValue::Known(match worker.kind {
            WorkerKind::Own => WorkerItemKind::Own,
            WorkerKind::Http => WorkerItemKind::Http,
        }),
        directive: worker.directive.map(|directive| directive.as_str().to_owned()),
        queues: worker.queues.clone(),
        active_jobs: worker.busy,
        concurrency: worker.slots,
        hostname: worker.host.clone(),
        pid: worker.pid,
        version: worker.version.clone(),
        started_at: worker.started_at.to_rfc3339(),
        last_heartbeat_at: worker.seen_at.to_rfc3339(),
    }
}
