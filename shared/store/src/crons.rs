//! Entries that make a job at times.

use crate::{StoreError, Term};
use async_trait::async_trait;
use turnstone_domain::cron::{CronChange, CronEntry, CronRun};
use turnstone_domain::{JobId, NewJob, Timestamp};

/// Occurrences of an entry that are to be acted upon.
#[derive(Clone, PartialEq, Debug)]
pub struct Firing {
    /// The entry as it was read: nothing happens when its next occurrence is another one by now.
    pub entry: CronEntry,
    /// The occurrences, oldest first, each with the job it makes or why it makes none.
    pub due: Vec<(Timestamp, Result<NewJob, String>)>,
    /// The occurrence after these.
    pub next_run_at: Option<Timestamp>,
    /// Now.
    pub at: Timestamp,
}

/// Entries that make a job at times.
#[async_trait]
pub trait Crons: Send + Sync + 'static {
    /// Makes an entry, or replaces the one of its name and tenant, which keeps its age and its counts. Returns whether
    /// it is new.
    async fn put(&self, entry: CronEntry) -> Result<bool, StoreError>;

    /// Changes an entry; returns whether there is one.
    async fn change(
        &self,
        name: &str,
        tenant: Option<&str>,
        change: CronChange,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// One entry. Without a tenant, that of nobody in particular comes before those of tenants.
    async fn cron(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError>;

    /// Entries by name; with `enabled`, those that are or are not.
    async fn crons(&self, tenant: Option<&str>, enabled: Option<bool>) -> Result<Vec<CronEntry>, StoreError>;

    /// Forgets an entry and its history; the jobs that it made stay. Returns it as it was.
    async fn forget(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError>;

    /// At most `limit` entries whose next occurrence has come, the longest due first.
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<CronEntry>, StoreError>;

    /// Acts upon occurrences in one transaction: applies the overlap policy, pushes the jobs, moves the entry on and
    /// remembers what became of it. Returns how many jobs were made; `None` when somebody else has moved the entry on,
    /// and nothing was changed.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended, and nothing was changed.
    async fn fire(&self, firing: Firing, term: &Term) -> Result<Option<usize>, StoreError>;

    /// Makes a job of an entry now, besides its times and whatever its overlap policy says.
    ///
    /// # Errors
    /// As for [`crate::Intake::push`].
    async fn trigger(&self, entry: &CronEntry, job: NewJob, at: Timestamp) -> Result<JobId, StoreError>;

    /// The latest occurrences of an entry, newest first.
    async fn history(&self, entry: &CronEntry, limit: u32) -> Result<Vec<CronRun>, StoreError>;
}
