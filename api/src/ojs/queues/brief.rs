//! The parts that answers about queues share.

use serde::Serialize;
use turnstone_store::Queue;
use utoipa::ToSchema;

/// `active` or `paused`.
pub(super) fn status(paused: bool) -> &'static str {
    if paused { "paused" } else { "active" }
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
    /// RFC 3339; absent for queues that were there from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

impl Brief {
    /// Returns the facts about a queue. An unused queue is like any other: naming a queue creates it.
    pub(super) fn of(name: String, queue: Option<&Queue>) -> Self {
        let paused = queue.is_some_and(|queue| queue.paused);
        let created_at = queue.and_then(|queue| queue.created_at).map(|at| at.to_rfc3339());
        Self { name, paused, status: status(paused).to_owned(), created_at }
    }
}
