//! `GET /ojs/v1/queues` and `GET /ojs/v1/admin/queues`: the queues by name.

use super::counts::{Brief, Counts, status};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::JobState;
use turnstone_store::Page;
use utoipa::ToSchema;

const HOUR_MS: i64 = 3_600_000;

/// Queues by name.
#[derive(Serialize, ToSchema)]
pub(super) struct QueueList {
    queues: Vec<Brief>,
    pagination: Slice,
}

/// The position of a part in its list.
#[derive(Serialize, ToSchema)]
pub(super) struct Slice {
    total: u64,
    limit: u32,
    offset: u32,
    has_more: bool,
}

impl Slice {
    /// Returns the position of the part that `page` selects, of which `shown` are here.
    pub(super) fn of(total: u64, page: Page, shown: usize) -> Self {
        let seen = u64::from(page.offset).saturating_add(shown as u64);
        Self { total, limit: page.limit, offset: page.offset, has_more: seen < total }
    }
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
    let pagination = Slice::of(total, page, queues.len());
    let queues = queues.iter().map(|queue| Brief::of(queue.name.clone(), Some(queue))).collect();
    Ok(reply::ok(&QueueList { queues, pagination }))
}

/// Queues with their jobs.
#[derive(Serialize, ToSchema)]
pub(super) struct CountedQueues {
    items: Vec<CountedQueue>,
    pagination: PagePosition,
}

/// Jobs that ended, by how they ended.
#[derive(Serialize, ToSchema)]
pub(super) struct EndedCounts {
    completed: u64,
    discarded: u64,
    cancelled: u64,
}

impl EndedCounts {
    /// Returns those of one queue among the counts of several.
    fn of(queue: &str, counted: &[(String, JobState, u64)]) -> Self {
        let jobs = |wanted: JobState| {
            let mut found = counted.iter().filter(|(name, state, _)| name == queue && *state == wanted);
            found.next().map_or(0, |(.., jobs)| *jobs)
        };
        Self {
            completed: jobs(JobState::Completed),
            discarded: jobs(JobState::Discarded),
            cancelled: jobs(JobState::Cancelled),
        }
    }
}

/// A queue with its jobs.
#[derive(Serialize, ToSchema)]
pub(super) struct CountedQueue {
    #[schema(example = "default")]
    name: String,
    /// active or paused.
    #[schema(example = "active")]
    state: &'static str,
    paused: bool,
    counts: Counts,
    /// Jobs that ended within the last hour.
    last_hour: EndedCounts,
    /// Available, scheduled and retryable jobs.
    depth: u64,
    /// The pool in which it shares workers.
    pool: Option<String>,
}

/// The position of a page in its list.
#[derive(Serialize, ToSchema)]
pub(in crate::ojs) struct PagePosition {
    pub(in crate::ojs) total: u64,
    pub(in crate::ojs) page: u32,
    pub(in crate::ojs) per_page: u32,
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
            let counts = Counts::of(&queue.name, &counted);
            CountedQueue {
                state: status(queue.paused),
                paused: queue.paused,
                counts,
                last_hour: EndedCounts::of(&queue.name, &ended),
                depth: counts.depth(),
                pool: queue.pool,
                name: queue.name,
            }
        })
        .collect();
    let pagination = PagePosition { total, page, per_page: slice.limit };
    Ok(reply::ok(&CountedQueues { items, pagination }))
}
