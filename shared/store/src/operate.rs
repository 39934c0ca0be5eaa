//! What operators do to many jobs at once: dead letters, bulk, statistics, tenants.

use crate::{HourlyCount, JobFilter, Page, StoreError};
use async_trait::async_trait;
use turnstone_domain::{Job, JobId, JobState, Overrides, Timestamp};

/// What an operator does to a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobAction {
    /// `discarded → available` from the first attempt, and `retryable → available` before its time.
    Retry,
    /// To `cancelled`, from every state that is not terminal.
    Cancel,
    /// The job and its history go. One that waits is cancelled before; one that is active stays.
    Delete,
}

impl JobAction {
    /// The states in which it can be done.
    #[must_use]
    pub fn states(self) -> &'static [JobState] {
        match self {
            Self::Retry => &[JobState::Discarded, JobState::Retryable],
            Self::Cancel => &[
                JobState::Scheduled,
                JobState::Available,
                JobState::Pending,
                JobState::Active,
                JobState::Retryable,
            ],
            Self::Delete => &[JobState::Completed, JobState::Cancelled, JobState::Discarded],
        }
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Delete => "delete",
        }
    }
}

/// What became of something that an operator did to one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ActionOutcome {
    /// It is done.
    Done {
        /// Where the job stood before.
        previous: JobState,
    },
    /// In this state it cannot be done; nothing changed.
    Refused(JobState),
    /// The job has to be unique, and this one, which is like it, has not ended; nothing changed.
    NotUnique(JobId),
    /// Forks read the engagement's past; nothing changed.
    Forked,
    /// The engagement goes on with further inputs, which read this one; nothing changed.
    GoesOn,
    /// There is no such job, or no such dead letter.
    NotFound,
}

/// One thing done to all jobs that a filter finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// What is done.
    pub action: JobAction,
    /// Only to dead letters.
    pub dead_letters: bool,
    /// To jobs in these states; none stands for those in which it can be done.
    pub states: Vec<JobState>,
    /// Which jobs; its state and its order do not count.
    pub filter: JobFilter,
    /// To this many at most.
    pub most: usize,
    /// Nothing is done, only looked for.
    pub dry_run: bool,
    /// Now.
    pub at: Timestamp,
}

/// What became of a [`Bulk`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BulkOutcome {
    /// Jobs that the filter found when it began.
    pub matched: u64,
    /// Those it was done to; with `dry_run`, those it would be done to.
    pub done: Vec<JobId>,
    /// Those that were in another state when their turn came, or may not live beside another job that is like them.
    pub refused: Vec<(JobId, JobState)>,
}

/// Dead letters of one queue and type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadTotal {
    /// Their queue.
    pub queue: String,
    /// Their type.
    pub job_type: String,
    /// How many.
    pub jobs: i64,
    /// When the first of them ended.
    pub first_at: Timestamp,
    /// When the last of them ended.
    pub last_at: Timestamp,
}

/// A tenant, as far as it has jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TenantTotal {
    /// Its name.
    pub tenant: String,
    /// Its jobs.
    pub jobs: i64,
    /// Those that have not ended.
    pub unfinished: i64,
    /// When it was given a job last.
    pub last_at: Timestamp,
}

/// What operators do to many jobs at once: dead letters, bulk, statistics, tenants. `tenant` limits each call to the
/// jobs of one; `None` is any.
#[async_trait]
pub trait Operate: Send + Sync + 'static {
    /// Dead letters, newest first, and how many match in total. State and order of the filter do not count; one that is
    /// damaged is listed as in [`crate::Views::jobs`].
    async fn dead_letters(&self, filter: &JobFilter, page: Page) -> Result<(Vec<Job>, u64), StoreError>;

    /// One dead letter.
    async fn dead_letter(&self, id: &JobId, tenant: Option<&str>) -> Result<Option<Job>, StoreError>;

    /// How many dead letters there are, by queue and type.
    async fn dead_totals(&self, tenant: Option<&str>) -> Result<Vec<DeadTotal>, StoreError>;

    /// [`JobAction::Retry`] of one job; of a dead letter alone when `dead_letter` says so. An agent job goes on where
    /// it stopped.
    async fn retry(
        &self,
        id: &JobId,
        tenant: Option<&str>,
        dead_letter: bool,
        overrides: Overrides,
        at: Timestamp,
    ) -> Result<ActionOutcome, StoreError>;

    /// [`JobAction::Delete`] of one dead letter.
    async fn delete_dead_letter(&self, id: &JobId, tenant: Option<&str>)
    -> Result<ActionOutcome, StoreError>;

    /// One thing done to all jobs that a filter finds, in transactions of bounded size.
    async fn bulk(&self, bulk: Bulk) -> Result<BulkOutcome, StoreError>;

    /// How many jobs ended from `since` on, by state.
    async fn ended(&self, tenant: Option<&str>, since: Timestamp)
    -> Result<Vec<(JobState, u64)>, StoreError>;

    /// A tenant's ended jobs per hour, newest first, from `since` on, of those that are still kept.
    async fn history_of(&self, tenant: &str, since: Timestamp) -> Result<Vec<HourlyCount>, StoreError>;

    /// Tenants that have jobs, by name, and how many there are in total.
    async fn tenants(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<TenantTotal>, u64), StoreError>;

    /// Empties everything but agents, keys and what keeps the fleet together. Whoever works goes on; what is in flight
    /// loses its lease.
    async fn reset(&self) -> Result<(), StoreError>;
}
