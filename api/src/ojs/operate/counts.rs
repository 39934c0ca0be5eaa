//! Jobs per state, as every answer with such counts has them.

use serde::Serialize;
use turnstone_domain::JobState;
use utoipa::ToSchema;

/// How many jobs are in each state.
#[derive(Serialize, ToSchema, Default, Debug)]
pub(crate) struct StateCounts {
    scheduled: u64,
    available: u64,
    pending: u64,
    active: u64,
    completed: u64,
    retryable: u64,
    cancelled: u64,
    discarded: u64,
}

impl StateCounts {
    /// States that are not named have none.
    pub(crate) fn of(counts: &[(JobState, u64)]) -> Self {
        let of = |wanted: JobState| {
            counts.iter().filter(|(state, _)| *state == wanted).map(|(_, count)| count).sum()
        };
        Self {
            scheduled: of(JobState::Scheduled),
            available: of(JobState::Available),
            pending: of(JobState::Pending),
            active: of(JobState::Active),
            completed: of(JobState::Completed),
            retryable: of(JobState::Retryable),
            cancelled: of(JobState::Cancelled),
            discarded: of(JobState::Discarded),
        }
    }

    /// Returns the number of all jobs.
    pub(crate) fn total(&self) -> u64 {
        self.unfinished() + self.completed + self.cancelled + self.discarded
    }

    /// Returns the number of jobs that have not ended.
    pub(crate) fn unfinished(&self) -> u64 {
        self.scheduled + self.available + self.pending + self.active + self.retryable
    }
}

/// How fast jobs end.
#[derive(Serialize, ToSchema)]
pub(crate) struct Throughput {
    /// Jobs that were completed or discarded within the last minute.
    processed_per_minute: u64,
    /// Jobs that were discarded within the last minute.
    failed_per_minute: u64,
}

impl Throughput {
    /// The span that is counted, in milliseconds.
    pub(crate) const SPAN_MS: i64 = 60_000;

    /// Of the jobs that ended within [`Self::SPAN_MS`].
    pub(crate) fn of(ended: &[(JobState, u64)]) -> Self {
        let ended = StateCounts::of(ended);
        Self { processed_per_minute: ended.completed + ended.discarded, failed_per_minute: ended.discarded }
    }
}
