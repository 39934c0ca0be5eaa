//! Entries that make a job at times.

use super::Engine;
use super::ops::crons as ops;
use super::rows::{self, Fields, Inconsistency, get};
use super::session::Arg;
use super::views::{all, many};
use crate::{StoreError, Term, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
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

fn run(row: &impl Fields) -> Result<CronRun, Inconsistency> {
    Ok(CronRun {
        scheduled_at: get(row, "scheduled_at")?,
        at: get(row, "at")?,
        outcome: get(row, "outcome")?,
        job_id: get::<Option<String>>(row, "job_id")?.map(JobId),
        message: get(row, "message")?,
    })
}

/// Entries that make a job at times.
#[derive(Clone)]
pub struct Crons(pub(super) Arc<Engine>);

impl Crons {
    /// Makes an entry, or replaces the one of its name and tenant, which keeps its age and its counts. Returns whether
    /// it is new. A tenant has at most `most` entries.
    #[boxed]
    pub async fn put(&self, entry: CronEntry, most: u32) -> Result<bool, StoreError> {
        let requested = (entry, most);
        self.0
            .write(requested, |tx, (entry, most)| {
                Box::pin(ops::put(&mut tx.session, &mut tx.unit, entry, *most))
            })
            .await
    }

    /// Changes an entry; returns whether there is one.
    #[boxed]
    pub async fn change(
        &self,
        name: &str,
        tenant: Option<&str>,
        change: CronChange,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let requested = (name.to_owned(), tenant.map(str::to_owned), change, at);
        self.0
            .write(requested, |tx, (name, tenant, change, at)| {
                Box::pin(ops::change(&mut tx.session, &mut tx.unit, (name, tenant.as_deref()), change, *at))
            })
            .await
    }

    /// Returns one entry. Without a tenant, an entry that has no tenant comes before those of tenants.
    #[boxed]
    pub async fn cron(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError> {
        Ok(self.listed(Some(name), tenant, None).await?.into_iter().next())
    }

    /// Entries by name; with `enabled`, those that are or are not.
    #[boxed]
    pub async fn crons(
        &self,
        tenant: Option<&str>,
        enabled: Option<bool>,
    ) -> Result<Vec<CronEntry>, StoreError> {
        self.listed(None, tenant, enabled).await
    }

    /// Forgets an entry and its history; the jobs that it made stay. Returns it as it was.
    #[boxed]
    pub async fn forget(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError> {
        self.0
            .write((name.to_owned(), tenant.map(str::to_owned)), |tx, (name, tenant)| {
                Box::pin(ops::forget(&mut tx.session, name, tenant.as_deref()))
            })
            .await
    }

    /// At most `limit` entries whose next occurrence has come, the longest due first.
    #[boxed]
    pub async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<CronEntry>, StoreError> {
        let values = [now.0.into(), limit.into()];
        let (action, text) = ("look for due cron entries", &sql::SELECT_DUE_CRONS);
        many(&self.0.readers, action, text, &values, rows::decode).await
    }

    /// Acts upon occurrences in one transaction: applies the overlap policy, pushes the jobs, moves the entry to
    /// its next time and records the outcome. Returns how many jobs were made. Returns `None`, with nothing
    /// changed, when a concurrent write has moved the entry.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended, and nothing was changed.
    #[boxed]
    pub async fn fire(&self, firing: Firing, term: &Term) -> Result<Option<usize>, StoreError> {
        self.0
            .write((firing, term.clone()), |tx, (firing, term)| {
                Box::pin(ops::fire(&mut tx.session, &mut tx.unit, firing, term, &*tx.ids))
            })
            .await?
    }

    /// Makes a job of an entry now, besides its times and whatever its overlap policy says.
    ///
    /// # Errors
    /// As for [`crate::Intake::push`].
    #[boxed]
    pub async fn trigger(&self, entry: &CronEntry, job: NewJob, at: Timestamp) -> Result<JobId, StoreError> {
        self.0
            .write((entry.clone(), job, at), |tx, (entry, job, at)| {
                Box::pin(ops::trigger(&mut tx.session, &mut tx.unit, entry, job, *at, &*tx.ids))
            })
            .await?
    }

    /// The latest occurrences of an entry, newest first.
    #[boxed]
    pub async fn history(&self, entry: &CronEntry, limit: u32) -> Result<Vec<CronRun>, StoreError> {
        let tenant = entry.tenant.as_deref().unwrap_or_default();
        let values = [tenant.into(), entry.name.as_str().into(), limit.into()];
        let (action, text) = ("read the history of a cron entry", &sql::SELECT_CRON_RUNS);
        many(&self.0.readers, action, text, &values, run).await
    }

    async fn listed(
        &self,
        name: Option<&str>,
        tenant: Option<&str>,
        enabled: Option<bool>,
    ) -> Result<Vec<CronEntry>, StoreError> {
        let values = [name.into(), tenant.into(), Arg::Int(enabled.map(i64::from))];
        let (action, text) = ("list cron entries", &sql::SELECT_CRONS);
        match name {
            // A row that is asked for by name is an error when it cannot be read.
            Some(_) => all(&self.0.readers, action, text, &values, rows::decode).await,
            None => many(&self.0.readers, action, text, &values, rows::decode).await,
        }
    }
}
