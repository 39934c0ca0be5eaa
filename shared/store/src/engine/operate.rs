//! What operators do to many jobs at once: dead letters, bulk, statistics, tenants: the calls.

use super::Engine;
use super::ops::operate::{Answer as Operated, Request as Asked};
use super::rows::{self, JobRow, get, time};
use super::session::{Arg, Reader};
use super::views::{all, matching, one};
use super::writer::{Answer, Request};
use crate::sql::{self, Text};
use crate::{
    ActionOutcome, Bulk, BulkOutcome, DeadTotal, HourlyCount, JobAction, JobFilter, Operate, Page,
    StoreError, TenantTotal,
};
use async_trait::async_trait;
use turnstone_domain::{Job, JobId, JobState, Overrides, Timestamp};

/// Jobs of one transaction: the bound of how long others wait for it.
const AT_ONCE: usize = 250;

/// What every statement over dead letters takes first: all of a filter but the state.
fn dead(filter: &JobFilter) -> [Arg<'_>; 5] {
    let [_, queue, job_type, tenant, since, until] = matching(filter);
    [queue, job_type, tenant, since, until]
}

/// A statement over the filter of a [`Bulk`], with what it takes first.
fn chosen<'a>(
    bulk: &'a Bulk,
    filter: &'a JobFilter,
    of_jobs: &'static Text,
    of_dead: &'static Text,
) -> (&'static Text, Vec<Arg<'a>>) {
    if bulk.dead_letters { (of_dead, dead(filter).into()) } else { (of_jobs, matching(filter).into()) }
}

impl<R: Reader> Engine<R> {
    async fn operate(&self, asked: Asked) -> Result<Operated, StoreError> {
        match self.request(Request::Operate(asked)).await? {
            Answer::Operate(answer) => Ok(answer),
            _ => Err(StoreError::Closed),
        }
    }

    async fn once(&self, asked: Asked) -> Result<ActionOutcome, StoreError> {
        match self.operate(asked).await? {
            Operated::One(outcome) => Ok(outcome),
            _ => Err(StoreError::Closed),
        }
    }

    async fn several(
        &self,
        bulk: &Bulk,
        action: JobAction,
        ids: Vec<JobId>,
    ) -> Result<(Vec<JobId>, Vec<(JobId, JobState)>), StoreError> {
        let asked = Asked::Several { action, ids, dead_letters: bulk.dead_letters, at: bulk.at };
        match self.operate(asked).await? {
            Operated::Several { done, refused } => Ok((done, refused)),
            _ => Err(StoreError::Closed),
        }
    }

    /// The next jobs that a filter finds after `after`, with where they stand in the order of acceptance.
    async fn found(
        &self,
        bulk: &Bulk,
        filter: &JobFilter,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, JobId)>, StoreError> {
        let (text, mut values) =
            chosen(bulk, filter, &sql::SELECT_JOBS_BY_TEXT, &sql::SELECT_DEAD_JOBS_BY_TEXT);
        values.push(after.into());
        values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        all(&self.readers, "look for jobs", text, &values, |row| {
            Ok((get(row, "seq")?, JobId(get(row, "id")?)))
        })
        .await
    }

    /// Does it to the jobs of one state.
    async fn bulk_of(
        &self,
        bulk: &Bulk,
        filter: &JobFilter,
        outcome: &mut BulkOutcome,
    ) -> Result<(), StoreError> {
        let (text, values) = chosen(bulk, filter, &sql::SELECT_JOB_COUNTS, &sql::SELECT_DEAD_COUNT);
        let count = one(&self.readers, "count jobs", text, &values, |row| get::<i64>(row, "jobs")).await?;
        outcome.matched += count.unwrap_or_default().unsigned_abs();
        let waits = filter.state.is_some_and(|state| !state.is_terminal() && state != JobState::Active);
        let mut after = 0;
        loop {
            let left = bulk.most.saturating_sub(outcome.done.len() + outcome.refused.len());
            let found = self.found(bulk, filter, after, left.min(AT_ONCE)).await?;
            let Some((last, _)) = found.last() else { return Ok(()) };
            after = *last;
            let ids: Vec<JobId> = found.into_iter().map(|(_, id)| id).collect();
            if bulk.dry_run {
                outcome.done.extend(ids);
                continue;
            }
            if bulk.action == JobAction::Delete && waits {
                // In a transaction of its own, so that whoever waits for them hears of it.
                self.several(bulk, JobAction::Cancel, ids.clone()).await?;
            }
            let (done, refused) = self.several(bulk, bulk.action, ids).await?;
            outcome.done.extend(done);
            outcome.refused.extend(refused);
        }
    }
}

#[async_trait]
impl<R: Reader> Operate for Engine<R> {
    async fn dead_letters(&self, filter: &JobFilter, page: Page) -> Result<(Vec<Job>, u64), StoreError> {
        let readers = &self.readers;
        let (action, text) = ("count dead letters", &sql::SELECT_DEAD_COUNT);
        let total = one(readers, action, text, &dead(filter), |row| get::<i64>(row, "jobs")).await?;
        let part = [page.limit.into(), page.offset.into()];
        let values: Vec<Arg<'_>> = dead(filter).into_iter().chain(part).collect();
        let rows =
            all(readers, "list dead letters", &sql::SELECT_DEAD_JOBS, &values, JobRow::salvage).await?;
        Ok((self.jobs_listed(rows).await?, total.unwrap_or_default().unsigned_abs()))
    }

    async fn dead_letter(&self, id: &JobId, tenant: Option<&str>) -> Result<Option<Job>, StoreError> {
        let (action, values) = ("read a dead letter", [id.as_str().into(), tenant.into()]);
        let rows = all(&self.readers, action, &sql::SELECT_DEAD_JOB, &values, JobRow::decode).await?;
        Ok(self.complete(rows).await?.pop())
    }

    async fn dead_totals(&self, tenant: Option<&str>) -> Result<Vec<DeadTotal>, StoreError> {
        all(&self.readers, "count dead letters", &sql::SELECT_DEAD_TOTALS, &[tenant.into()], |row| {
            Ok(DeadTotal {
                queue: get(row, "queue")?,
                job_type: get(row, "job_type")?,
                jobs: get(row, "jobs")?,
                first_at: time(row, "first_at")?,
                last_at: time(row, "last_at")?,
            })
        })
        .await
    }

    async fn retry(
        &self,
        id: &JobId,
        tenant: Option<&str>,
        dead_letter: bool,
        overrides: Overrides,
        at: Timestamp,
    ) -> Result<ActionOutcome, StoreError> {
        let (id, tenant) = (id.clone(), tenant.map(str::to_owned));
        self.once(Asked::Retry { id, tenant, dead_letter, overrides: Box::new(overrides), at }).await
    }

    async fn delete_dead_letter(
        &self,
        id: &JobId,
        tenant: Option<&str>,
    ) -> Result<ActionOutcome, StoreError> {
        self.once(Asked::Delete { id: id.clone(), tenant: tenant.map(str::to_owned) }).await
    }

    async fn bulk(&self, bulk: Bulk) -> Result<BulkOutcome, StoreError> {
        let states: &[JobState] = match bulk.states.as_slice() {
            _ if bulk.dead_letters => &[JobState::Discarded],
            [] => bulk.action.states(),
            named => named,
        };
        let mut outcome = BulkOutcome::default();
        for state in states {
            let filter = JobFilter { state: Some(*state), ..bulk.filter.clone() };
            self.bulk_of(&bulk, &filter, &mut outcome).await?;
        }
        Ok(outcome)
    }

    async fn ended(
        &self,
        tenant: Option<&str>,
        since: Timestamp,
    ) -> Result<Vec<(JobState, u64)>, StoreError> {
        let values = [since.0.into(), tenant.into()];
        all(&self.readers, "count ended jobs", &sql::SELECT_ENDED_RECENTLY, &values, |row| {
            let jobs: i64 = get(row, "jobs")?;
            Ok((rows::word(row, "state", JobState::parse)?, jobs.unsigned_abs()))
        })
        .await
    }

    async fn history_of(&self, tenant: &str, since: Timestamp) -> Result<Vec<HourlyCount>, StoreError> {
        let (action, values) = ("count ended jobs", [since.0.into(), tenant.into()]);
        all(&self.readers, action, &sql::SELECT_ENDED_PER_HOUR, &values, rows::hourly_count).await
    }

    async fn tenants(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<TenantTotal>, u64), StoreError> {
        let (action, text) = ("count tenants", &sql::SELECT_TENANT_COUNT);
        let decode = |row: &R::Row| get::<i64>(row, "tenants");
        let total = one(&self.readers, action, text, &[tenant.into()], decode).await?;
        let values = [tenant.into(), page.limit.into(), page.offset.into()];
        let tenants = all(&self.readers, "list tenants", &sql::SELECT_TENANTS, &values, |row| {
            Ok(TenantTotal {
                tenant: get(row, "tenant")?,
                jobs: get(row, "jobs")?,
                unfinished: get(row, "unfinished")?,
                last_at: time(row, "last_at")?,
            })
        })
        .await?;
        Ok((tenants, total.unwrap_or_default().unsigned_abs()))
    }

    async fn reset(&self) -> Result<(), StoreError> {
        self.operate(Asked::Reset).await?;
        self.held.forget();
        Ok(())
    }
}
