//! The parts that answers about queues share.

use serde::Serialize;
use turnstone_domain::Timestamp;
use turnstone_store::Queue;
use utoipa::ToSchema;

/// `active` or `paused`.
pub(super) fn status(paused: bool) -> &'static str {
    if paused { "paused" } else { "active" }
}

/// Returns the time of the queue's first use. Tenants do not see it: the use may be that of another tenant.
pub(super) fn created_at(queue: &Queue, tenant: Option<&str>) -> Option<Timestamp> {
    queue.created_at.filter(|_| tenant.is_none())
}

/// A queue's name and whether it is paused.
#[derive(Serialize, ToSchema)]
pub(crate) struct Brief {
    #[schema(example = "default")]
    name: String,
    /// Nothing in a paused queue is claimed.
    paused: bool,
    /// active or paused.
    #[schema(example = "active")]
    status: String,
    /// RFC 3339; absent for tenants, and for queues that were there from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

impl Brief {
    /// Returns the facts about a queue. An unused queue is like any other: naming a queue creates it.
    pub(super) fn of(name: String, queue: Option<&Queue>, tenant: Option<&str>) -> Self {
        let paused = queue.is_some_and(|queue| queue.paused);
        let created_at = queue.and_then(|queue| created_at(queue, tenant)).map(|at| at.to_rfc3339());
        Self { name, paused, status: status(paused).to_owned(), created_at }
    }
}
