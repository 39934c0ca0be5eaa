//! Entries that make a job at times: the calls.

use super::Engine;
use super::ops::crons::{Answer as Did, Request as Asked};
use super::rows::{Fields, Inconsistency, get, maybe, time, time_or_none, word};
use super::session::{Arg, Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::{Crons, Firing, StoreError, Term, sql};
use async_trait::async_trait;
use turnstone_domain::cron::{CronChange, CronEntry, CronRun, Missed, Outcome, Overlap};
use turnstone_domain::{JobId, NewJob, Timestamp};

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

impl<R: Reader> Engine<R> {
    async fn of_crons(&self, asked: Asked) -> Result<Did, StoreError> {
        match self.request(Request::Crons(asked)).await? {
            Answer::Crons(did) => Ok(did),
            _ => Err(StoreError::Closed),
        }
    }

    async fn listed(
        &self,
        name: Option<&str>,
        tenant: Option<&str>,
        enabled: Option<bool>,
    ) -> Result<Vec<CronEntry>, StoreError> {
        let values = [name.into(), tenant.into(), Arg::Int(enabled.map(i64::from))];
        let rows = self.readers.read("list cron entries", &sql::SELECT_CRONS, Args::Values(&values)).await?;
        decode_all(&rows, entry)
    }
}

#[async_trait]
impl<R: Reader> Crons for Engine<R> {
    async fn put(&self, entry: CronEntry) -> Result<bool, StoreError> {
        match self.of_crons(Asked::Put(Box::new(entry))).await? {
            Did::Changed(new) => Ok(new),
            _ => Err(StoreError::Closed),
        }
    }

    async fn change(
        &self,
        name: &str,
        tenant: Option<&str>,
        change: CronChange,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let (name, tenant) = (name.to_owned(), tenant.map(str::to_owned));
        match self.of_crons(Asked::Change { name, tenant, change: Box::new(change), at }).await? {
            Did::Changed(changed) => Ok(changed),
            _ => Err(StoreError::Closed),
        }
    }

    async fn cron(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError> {
        Ok(self.listed(Some(name), tenant, None).await?.into_iter().next())
    }

    async fn crons(&self, tenant: Option<&str>, enabled: Option<bool>) -> Result<Vec<CronEntry>, StoreError> {
        self.listed(None, tenant, enabled).await
    }

    async fn forget(&self, name: &str, tenant: Option<&str>) -> Result<Option<CronEntry>, StoreError> {
        let (name, tenant) = (name.to_owned(), tenant.map(str::to_owned));
        match self.of_crons(Asked::Forget { name, tenant }).await? {
            Did::Forgotten(entry) => Ok(entry.map(|entry| *entry)),
            _ => Err(StoreError::Closed),
        }
    }

    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<CronEntry>, StoreError> {
        let values = [now.0.into(), limit.into()];
        let rows = self
            .readers
            .read("look for due cron entries", &sql::SELECT_DUE_CRONS, Args::Values(&values))
            .await?;
        decode_all(&rows, entry)
    }

    async fn fire(&self, firing: Firing, term: &Term) -> Result<Option<usize>, StoreError> {
        let (firing, term) = (Box::new(firing), term.clone());
        match self.of_crons(Asked::Fire { firing, term }).await? {
            Did::Fired(made) => Ok(made),
            Did::Refused(error) => Err(error),
            _ => Err(StoreError::Closed),
        }
    }

    async fn trigger(&self, entry: &CronEntry, job: NewJob, at: Timestamp) -> Result<JobId, StoreError> {
        let asked = Asked::Trigger { entry: Box::new(entry.clone()), job: Box::new(job), at };
        match self.of_crons(asked).await? {
            Did::Triggered(job) => Ok(job),
            Did::Refused(error) => Err(error),
            _ => Err(StoreError::Closed),
        }
    }

    async fn history(&self, entry: &CronEntry, limit: u32) -> Result<Vec<CronRun>, StoreError> {
        let tenant = entry.tenant.as_deref().unwrap_or_default();
        let values = [tenant.into(), entry.name.as_str().into(), limit.into()];
        let (action, text) = ("read the history of a cron entry", &sql::SELECT_CRON_RUNS);
        decode_all(&self.readers.read(action, text, Args::Values(&values)).await?, run)
    }
}
