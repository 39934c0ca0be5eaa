//! `GET /ojs/v1/queues` and `GET /ojs/v1/admin/queues`: the queues by name.

use super::brief::{Brief, status};
use crate::api::Shared;
use crate::counts::StateCounts;
use crate::parts::{PagePosition, SlicePosition};
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_store::Page;
use utoipa::ToSchema;

const HOUR_MS: i64 = 3_600_000;

/// Queues by name.
#[derive(Serialize, ToSchema)]
pub(super) struct QueueList {
    queues: Vec<Brief>,
    pagination: SlicePosition,
}

/// Lists queues by name. A tenant sees those in which it has jobs.
#[utoipa::path(
    get, path = "/ojs/v1/queues", tag = "queues",
    security(("tenant" = ["viewer"])),
    params(
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise, at most 200.", minimum = 1, maximum = 200),
        ("offset" = Option<u32>, Query, description = "After this many."),
    ),
    responses((status = 200, description = "The queues.", body = QueueList)),
)]
pub(crate) async fn list_queues(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let page =
        Page { limit: params.number("limit", 50, 1, 200)?, offset: params.number("offset", 0, 0, u32::MAX)? };
    let (queues, total) = app.api.store.queues.page(tenant.name(), page).await?;
    let pagination = SlicePosition::of(total, page, queues.len());
    let queues =
        queues.iter().map(|queue| Brief::of(queue.name.clone(), Some(queue), tenant.name())).collect();
    Ok(reply::ok(&QueueList { queues, pagination }))
}

/// Queues with their jobs.
#[derive(Serialize, ToSchema)]
pub(super) struct CountedQueues {
    items: Vec<CountedQueue>,
    pagination: PagePosition,
}

/// Jobs that ended, by how they ended.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct EndedCounts {
    /// Jobs that succeeded.
    pub completed: u64,
    /// Jobs that failed for good.
    pub discarded: u64,
    cancelled: u64,
}

impl From<StateCounts> for EndedCounts {
    fn from(counts: StateCounts) -> Self {
        let StateCounts { completed, discarded, cancelled, .. } = counts;
        Self { completed, discarded, cancelled }
    }
}

/// A queue with its jobs.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CountedQueue {
    /// Its name.
    #[schema(example = "default")]
    pub name: String,
    /// active or paused.
    #[schema(example = "active")]
    pub state: String,
    /// True if nothing in it is claimed.
    pub paused: bool,
    /// Its jobs.
    pub counts: StateCounts,
    /// Jobs that ended within the last hour.
    pub last_hour: EndedCounts,
    /// Available, scheduled and retryable jobs.
    depth: u64,
    /// The pool in which it shares workers.
    pool: Option<String>,
}

/// Lists queues by name, with the jobs of each per state. A tenant sees its own.
#[utoipa::path(
    get, path = "/ojs/v1/admin/queues", tag = "queues",
    security(("tenant" = ["viewer"])),
    params(
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The queues.", body = CountedQueues)),
)]
pub(crate) async fn list_all(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let (page, slice) = params.page()?;
    let (queues, total) = app.api.store.queues.page(tenant.name(), slice).await?;
    let names: Vec<String> = queues.iter().map(|queue| queue.name.clone()).collect();
    let counted = app.api.store.queues.counts(&names, tenant.name()).await?;
    let since = app.api.clock.now().plus_ms(-HOUR_MS);
    let ended = app.api.store.queues.ended(&names, tenant.name(), since).await?;
    let items = queues
        .into_iter()
        .map(|queue| {
            let counts = StateCounts::of_queue(&queue.name, &counted);
            CountedQueue {
                state: status(queue.paused).to_owned(),
                paused: queue.paused,
                counts,
                last_hour: StateCounts::of_queue(&queue.name, &ended).into(),
                depth: counts.depth(),
                pool: queue.pool,
                name: queue.name,
            }
        })
        .collect();
    let pagination = PagePosition { total, page, per_page: slice.limit };
    Ok(reply::ok(&CountedQueues { items, pagination }))
}
