//! Jobs of a queue per state, and values derived from them.

use serde::Serialize;
use turnstone_domain::JobState;
use turnstone_store::Queue;
use utoipa::ToSchema;

/// Jobs per state.
#[derive(Clone, Copy, Default, Serialize, ToSchema)]
pub(super) struct Counts {
    available: u64,
    active: u64,
    scheduled: u64,
    retryable: u64,
    pending: u64,
    completed: u64,
    cancelled: u64,
    discarded: u64,
}

impl Counts {
    /// Returns those of one queue among the counts of several.
    pub(super) fn of(queue: &str, counted: &[(String, JobState, u64)]) -> Self {
        let mut counts = Self::default();
        for (_, state, jobs) in counted.iter().filter(|(name, ..)| name == queue) {
            *match state {
                JobState::Available => &mut counts.available,
                JobState::Active => &mut counts.active,
                JobState::Scheduled => &mut counts.scheduled,
                JobState::Retryable => &mut counts.retryable,
                JobState::Pending => &mut counts.pending,
                JobState::Completed => &mut counts.completed,
                JobState::Cancelled => &mut counts.cancelled,
                JobState::Discarded => &mut counts.discarded,
            } = *jobs;
        }
        counts
    }

    /// Returns the waiting jobs, which a bound of the queue is compared with.
    pub(super) fn depth(&self) -> u64 {
        self.available + self.scheduled + self.retryable
    }
}

/// `active` or `paused`.
pub(super) fn status(paused: bool) -> &'static str {
    if paused { "paused" } else { "active" }
}

/// A queue's name and whether it is paused.
#[derive(Serialize, ToSchema)]
pub(super) struct Brief {
    #[schema(example = "default")]
    name: String,
    /// Nothing in a paused queue is claimed.
    paused: bool,
    /// active or paused.
    #[schema(example = "active")]
    status: &'static str,
    /// RFC 3339; absent for queues that were there from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

impl Brief {
    /// Returns the facts about a queue. An unused queue is like any other: naming a queue creates it.
    pub(super) fn of(name: String, queue: Option<&Queue>) -> Self {
        let paused = queue.is_some_and(|queue| queue.paused);
        let created_at = queue.and_then(|queue| queue.created_at).map(|at| at.to_rfc3339());
        Self { name, paused, status: status(paused), created_at }
    }
}
