//! Entries that make a job at times.

use super::Engine;
use super::ops::crons as ops;
use super::rows::{Fields, Inconsistency, get, maybe, time, time_or_none, word};
use super::session::{Arg, Args};
use super::statement::decode_all;
use crate::{StoreError, Term, sql};
use std::sync::Arc;
use turnstone_domain::cron::{CronChange, CronEntry, CronRun, Missed, Outcome, Overlap};
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

/// An entry out of its row.
pub(super) fn entry(row: &impl Fields) -> Result<CronEntry, Inconsistency> {
    let tenant: String = get(row, "tenant")?;
    Ok(CronEntry {
        name: get(row, "name")?,
        tenant: Some(tenant).filter(|tenant| !tenant.is_empty()),
        expression: get(row, "expression")?,
        timezone: get(row, "timezone")?,
        overlap: word(row, "overlap_policy", Overlap::parse)?,
        missed: word(row, "missed_policy", Missed::parse)?,
        enabled: get(row, "enabled")?,
        template: get(row, "template")?,
        description: maybe(row, "description")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        next_run_at: time_or_none(row, "next_run_at")?,
        last_run_at: time_or_none(row, "last_run_at")?,
        last_job_id: maybe::<String>(row, "last_job_id")?.map(JobId),
        runs: get(row, "runs")?,
        last_error: maybe(row, "last_error")?,
    })
}

fn run(row: &impl Fields) -> Result<CronRun, Inconsistency> {
    Ok(CronRun {
        scheduled_at: time(row, "scheduled_at")?,
        at: time(row, "at")?,
        outcome: word(row, "outcome", Outcome::parse)?,
        job_id: maybe::<String>(row, "job_id")?.map(JobId),
        message: maybe(row, "message")?,
    })
}

/// Entries that make a job at times.
#[derive(Clone)]
pub struct Crons(pub(super) Arc<Engine>);

impl Crons {
    /// Makes an entry, or replaces the one of its name and tenant, which keeps its age and its counts. Returns whether
    /// it is new.
    pub async fn put(&self, entry: CronEntry) -> Result<bool, StoreError> {
        self.0.write(entry, |tx, entry| Box::pin(ops::put(&mut tx.session, &mut tx.unit, entry))).await
    }

    /// Changes an entry; returns whether there is one.
    pub async fn change(
        &self,
        name: &str,
        tenant: Option<&str>,
        change: CronChange,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let asked = (name.to_owned(), tenant.map(str::to_owned), change, at);
        self.0
            .write(asked, |tx, (name, tenant, change, at)| {
                Box::pin(ops::change(&mut tx.session, &mut tx.unit, (name, tenant.as_deref()), change, *at))
            })
            .await
    }

    /// One entry. Without a tenant, that of nobody in particular comes before those of tenants.
    pub async fn cron(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError> {
        Ok(self.listed(Some(name), tenant, None).await?.into_iter().next())
    }

    /// Entries by name; with `enabled`, those that are or are not.
    pub async fn crons(
        &self,
        tenant: Option<&str>,
        enabled: Option<bool>,
    ) -> Result<Vec<CronEntry>, StoreError> {
        self.listed(None, tenant, enabled).await
    }

    /// Forgets an entry and its history; the jobs that it made stay. Returns it as it was.
    pub async fn forget(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError> {
        self.0
            .write((name.to_owned(), tenant.map(str::to_owned)), |tx, (name, tenant)| {
                Box::pin(ops::forget(&mut tx.session, name, tenant.as_deref()))
            })
            .await
    }

    /// At most `limit` entries whose next occurrence has come, the longest due first.
    pub async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<CronEntry>, StoreError> {
        let values = [now.0.into(), limit.into()];
        let rows = self
            .0
            .readers
            .read("look for due cron entries", &sql::SELECT_DUE_CRONS, Args::Values(&values))
            .await?;
        decode_all(&rows, entry)
    }

    /// Acts upon occurrences in one transaction: applies the overlap policy, pushes the jobs, moves the entry on and
    /// remembers what became of it. Returns how many jobs were made; `None` when somebody else has moved the entry on,
    /// and nothing was changed.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended, and nothing was changed.
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
    pub async fn trigger(&self, entry: &CronEntry, job: NewJob, at: Timestamp) -> Result<JobId, StoreError> {
        self.0
            .write((entry.clone(), job, at), |tx, (entry, job, at)| {
                Box::pin(ops::trigger(&mut tx.session, &mut tx.unit, entry, job, *at, &*tx.ids))
            })
            .await?
    }

    /// The latest occurrences of an entry, newest first.
    pub async fn history(&self, entry: &CronEntry, limit: u32) -> Result<Vec<CronRun>, StoreError> {
        let tenant = entry.tenant.as_deref().unwrap_or_default();
        let values = [tenant.into(), entry.name.as_str().into(), limit.into()];
        let (action, text) = ("read the history of a cron entry", &sql::SELECT_CRON_RUNS);
        decode_all(&self.0.readers.read(action, text, Args::Values(&values)).await?, run)
    }

    async fn listed(
        &self,
        name: Option<&str>,
        tenant: Option<&str>,
        enabled: Option<bool>,
    ) -> Result<Vec<CronEntry>, StoreError> {
        let values = [name.into(), tenant.into(), Arg::Int(enabled.map(i64::from))];
        let rows =
            self.0.readers.read("list cron entries", &sql::SELECT_CRONS, Args::Values(&values)).await?;
        decode_all(&rows, entry)
    }
}
