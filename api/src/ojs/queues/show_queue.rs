//! `GET /ojs/v1/queues/{name}`, `/stats` and `GET /ojs/v1/admin/queues/{name}`: one queue.

use super::brief::{Brief, created_at, status};
use super::settings::queue_name;
use crate::api::{App, Shared};
use crate::counts::StateCounts;
use crate::reply::{self, Answer, Failure};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use turnstone_store::Queue;
use utoipa::ToSchema;

/// A queue.
#[derive(Serialize, ToSchema)]
pub(super) struct QueueReply {
    queue: Brief,
}

/// Shows one queue. Naming a queue creates it, so every queue is found.
#[utoipa::path(
    get, path = "/ojs/v1/queues/{name}", tag = "queues",
    security(("tenant" = ["viewer"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "The queue.", body = QueueReply)),
)]
pub(crate) async fn show_queue(State(app): State<Shared>, tenant: Tenant, Segment(name): Segment) -> Answer {
    queue_name(&name)?;
    let known = app.api.store.queues.queue(&name).await?;
    Ok(reply::ok(&QueueReply { queue: Brief::of(name, known.as_ref(), tenant.name()) }))
}

/// The jobs of a queue, in two shapes: for clients of the conformance cases, and for those of the binding.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct QueueStats {
    /// The queue and its jobs.
    pub queue: CountedBrief,
    /// active or paused.
    status: String,
    /// How full it is.
    pub stats: Depths,
    /// RFC 3339, UTC.
    computed_at: String,
}

/// A queue and its jobs per state.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CountedBrief {
    /// Its name.
    #[schema(example = "default")]
    pub name: String,
    /// True if nothing in it is claimed.
    pub paused: bool,
    /// Its jobs.
    #[serde(flatten)]
    pub counts: StateCounts,
}

/// How full a queue is.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Depths {
    #[schema(example = "default")]
    queue: String,
    /// Available, scheduled and retryable jobs.
    pub depth: u64,
    /// The most that may wait; null when there is no bound.
    max_depth: Option<i64>,
    #[serde(flatten)]
    counts: StateCounts,
}

/// Counts the jobs of a queue. A tenant's header narrows it to its own jobs.
#[utoipa::path(
    get, path = "/ojs/v1/queues/{name}/stats", tag = "queues",
    security(("tenant" = ["viewer"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "The counts.", body = QueueStats)),
)]
pub(crate) async fn queue_stats(State(app): State<Shared>, tenant: Tenant, Segment(name): Segment) -> Answer {
    queue_name(&name)?;
    let (known, counts) = counted(&app, &name, tenant.name()).await?;
    let paused = known.as_ref().is_some_and(|queue| queue.paused);
    let stats = QueueStats {
        queue: CountedBrief { name: name.clone(), paused, counts },
        status: status(paused).to_owned(),
        stats: Depths {
            queue: name,
            depth: counts.depth(),
            max_depth: known.and_then(|queue| queue.limits.max_depth),
            counts,
        },
        computed_at: app.api.clock.now().to_rfc3339(),
    };
    Ok(reply::ok(&stats))
}

async fn counted(
    app: &App,
    name: &str,
    tenant: Option<&str>,
) -> Result<(Option<Queue>, StateCounts), Failure> {
    let queues = &app.api.store.queues;
    let known = queues.queue(name).await?;
    let counted = queues.counts(&[name.to_owned()], tenant).await?;
    Ok((known, StateCounts::of_queue(name, &counted)))
}

/// A queue as operators see it.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct QueueDetail {
    #[schema(example = "default")]
    name: String,
    /// active or paused.
    #[schema(example = "active")]
    state: String,
    paused: bool,
    counts: StateCounts,
    /// Available, scheduled and retryable jobs.
    pub depth: u64,
    /// The most that may wait; null when there is no bound.
    pub max_depth: Option<i64>,
    /// The settings of operators, as they were sent.
    pub config: Map<String, Value>,
    /// The pool in which it shares workers.
    pool: Option<String>,
    /// Its weight there.
    weight: i64,
    /// RFC 3339; null for tenants, and for queues that were there from the beginning.
    pub created_at: Option<String>,
}

/// Shows all facts about a queue.
#[utoipa::path(
    get, path = "/ojs/v1/admin/queues/{name}", tag = "queues",
    security(("tenant" = ["viewer"])),
    params(("name" = String, Path, description = "The queue.", example = "default")),
    responses((status = 200, description = "The queue.", body = QueueDetail)),
)]
pub(crate) async fn queue_detail(
    State(app): State<Shared>,
    tenant: Tenant,
    Segment(name): Segment,
) -> Answer {
    queue_name(&name)?;
    let (known, counts) = counted(&app, &name, tenant.name()).await?;
    Ok(reply::ok(&detail(name, known, counts, tenant.name())))
}

/// Returns a queue; an unused one is empty and has no settings.
pub(super) fn detail(
    name: String,
    known: Option<Queue>,
    counts: StateCounts,
    tenant: Option<&str>,
) -> QueueDetail {
    let paused = known.as_ref().is_some_and(|queue| queue.paused);
    let (config, pool, weight, max_depth, created_at) = known.map_or_else(
        || (Map::new(), None, 1, None, None),
        |queue| {
            let created_at = created_at(&queue, tenant);
            (queue.config, queue.pool, queue.weight, queue.limits.max_depth, created_at)
        },
    );
    let created_at = created_at.map(|at| at.to_rfc3339());
    let (state, depth) = (status(paused).to_owned(), counts.depth());
    QueueDetail { name, state, paused, counts, depth, max_depth, config, pool, weight, created_at }
}
