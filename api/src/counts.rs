//! Jobs per state, as every answer with such counts has them.

use serde::{Deserialize, Serialize};
use turnstone_domain::JobState;
use utoipa::ToSchema;

/// How many jobs are in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StateCounts {
    /// Jobs that a worker may claim.
    pub available: u64,
    /// Jobs that a worker holds.
    pub active: u64,
    /// Jobs whose time has not come.
    pub scheduled: u64,
    /// Jobs that wait for another attempt.
    pub retryable: u64,
    /// Jobs that are parked.
    pub pending: u64,
    /// Jobs that succeeded.
    pub completed: u64,
    /// Jobs that were cancelled.
    pub cancelled: u64,
    /// Jobs that failed for good.
    pub discarded: u64,
}

impl StateCounts {
    /// Returns these counts. States that are not named have none.
    pub(crate) fn of(counted: impl IntoIterator<Item = (JobState, u64)>) -> Self {
        let mut counts = Self::default();
        for (state, jobs) in counted {
            *match state {
                JobState::Available => &mut counts.available,
                JobState::Active => &mut counts.active,
                JobState::Scheduled => &mut counts.scheduled,
                JobState::Retryable => &mut counts.retryable,
                JobState::Pending => &mut counts.pending,
                JobState::Completed => &mut counts.completed,
                JobState::Cancelled => &mut counts.cancelled,
                JobState::Discarded => &mut counts.discarded,
            } += jobs;
        }
        counts
    }

    /// Returns those of one queue among the counts of several.
    pub(crate) fn of_queue(queue: &str, counted: &[(String, JobState, u64)]) -> Self {
        Self::of(counted.iter().filter(|(name, ..)| name == queue).map(|(_, state, jobs)| (*state, *jobs)))
    }

    /// Returns the waiting jobs, which a bound of the queue is compared with.
    pub(crate) fn depth(&self) -> u64 {
        self.available + self.scheduled + self.retryable
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
    pub(crate) fn of(ended: Vec<(JobState, u64)>) -> Self {
        let ended = StateCounts::of(ended);
        Self { processed_per_minute: ended.completed + ended.discarded, failed_per_minute: ended.discarded }
    }
}
