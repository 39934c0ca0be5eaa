//! Operations on many jobs at once: dead letters, bulk operations, statistics, tenants.

use super::job_filter::{matching, of_tag};
use super::ops::operate as ops;
use super::rows::{self, JobRow, get};
use super::session::{Arg, Row};
use super::views::{all, many, one};
use super::{Engine, inspect};
use crate::sql::{self, Text};
use crate::{HourlyCount, JobFilter, Page, RawRow, StoreError};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::{Job, JobId, JobState, Overrides, Timestamp};

/// An operation of an operator on a job.
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

/// The outcome of an operation on one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ActionOutcome {
    /// It is done.
    Done {
        /// The state of the job before.
        previous: JobState,
    },
    /// In this state it cannot be done; nothing changed.
    Refused(JobState),
    /// The job has to be unique, and this one, which is like it, has not ended; nothing changed.
    NotUnique(JobId),
    /// Forks read the engagement's past; nothing changed.
    Forked,
    /// The engagement has further inputs, which read this one; nothing changed.
    HasFurtherInputs,
    /// There is no such job, or no such dead letter.
    NotFound,
}

/// One thing done to all jobs that a filter finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// The operation.
    pub action: JobAction,
    /// Only to dead letters.
    pub dead_letters: bool,
    /// The states of the jobs to change; an empty list means every state in which the operation is possible.
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

/// The outcome of a [`Bulk`].
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

/// Jobs of one transaction: the bound of how long others wait for it.
const AT_ONCE: usize = 250;

/// Returns the first parameters of every statement over dead letters.
fn dead(filter: &JobFilter) -> [Arg<'_>; 6] {
    [
        filter.queue.as_deref().into(),
        filter.job_type.as_deref().into(),
        filter.tenant.as_deref().into(),
        Arg::Int(filter.since.map(|at| at.0)),
        Arg::Int(filter.until.map(|at| at.0)),
        filter.tag.as_deref().into(),
    ]
}

/// A statement over the filter of a [`Bulk`], with what it takes first.
fn chosen<'a>(
    bulk: &'a Bulk,
    filter: &'a JobFilter,
    of_jobs: &'static Text,
    of_dead: &'static Text,
) -> (&'static Text, Vec<Arg<'a>>) {
    if bulk.dead_letters { (of_dead, dead(filter).into()) } else { (of_jobs, matching(filter)) }
}

/// Operations on many jobs at once: dead letters, bulk operations, statistics, tenants. `tenant` limits each
/// call to the jobs of one tenant; `None` means any.
#[derive(Clone)]
pub struct Operate(pub(super) Arc<Engine>);

impl Operate {
    /// Dead letters, newest first, and how many match in total. State and order of the filter do not count; one that is
    /// damaged is listed as in [`crate::Views::jobs`].
    #[boxed]
    pub async fn dead_letters(&self, filter: &JobFilter, page: Page) -> Result<(Vec<Job>, u64), StoreError> {
        let readers = &self.0.readers;
        let (action, text) = ("count dead letters", &sql::SELECT_DEAD_COUNT);
        let total = one(readers, action, text, &dead(filter), |row| get::<i64>(row, "jobs")).await?;
        let after = filter.after.as_ref().map(JobId::as_str).into();
        let part = [page.limit.into(), page.offset.into(), after];
        let values: Vec<Arg<'_>> = dead(filter).into_iter().chain(part).collect();
        let rows =
            many(readers, "list dead letters", &sql::SELECT_DEAD_JOBS, &values, JobRow::decode).await?;
        Ok((self.0.jobs_listed(rows).await?, total.unwrap_or_default().unsigned_abs()))
    }

    /// The rows that belong to a job as they are stored, whether they can be read or not; none when it is not stored.
    #[boxed]
    pub async fn raw_job(&self, id: &JobId) -> Result<Vec<RawRow>, StoreError> {
        inspect::rows_of_job(&self.0.readers, id).await
    }

    /// One dead letter.
    #[boxed]
    pub async fn dead_letter(&self, id: &JobId, tenant: Option<&str>) -> Result<Option<Job>, StoreError> {
        let (action, values) = ("read a dead letter", [id.as_str().into(), tenant.into()]);
        let rows = many(&self.0.readers, action, &sql::SELECT_DEAD_JOB, &values, JobRow::decode).await?;
        Ok(self.0.complete(rows).await?.pop())
    }

    /// How many dead letters there are, by queue and type.
    #[boxed]
    pub async fn dead_totals(&self, tenant: Option<&str>) -> Result<Vec<DeadTotal>, StoreError> {
        many(&self.0.readers, "count dead letters", &sql::SELECT_DEAD_TOTALS, &[tenant.into()], |row| {
            Ok(DeadTotal {
                queue: get(row, "queue")?,
                job_type: get(row, "job_type")?,
                jobs: get(row, "jobs")?,
                first_at: get(row, "first_at")?,
                last_at: get(row, "last_at")?,
            })
        })
        .await
    }

    /// [`JobAction::Retry`] of one job; of a dead letter alone when `dead_letter` is true. An agent job resumes
    /// where it stopped.
    #[boxed]
    pub async fn retry(
        &self,
        id: &JobId,
        tenant: Option<&str>,
        dead_letter: bool,
        overrides: Overrides,
        at: Timestamp,
    ) -> Result<ActionOutcome, StoreError> {
        let requested = (id.clone(), tenant.map(str::to_owned), dead_letter, overrides, at);
        self.0
            .write(requested, |tx, (id, tenant, dead_letter, overrides, at)| {
                let job = (id, tenant.as_deref(), *dead_letter);
                Box::pin(ops::revive(&mut tx.session, &mut tx.unit, job, overrides, *at))
            })
            .await
    }

    /// Applies [`JobAction::Delete`] to one dead letter.
    #[boxed]
    pub async fn delete_dead_letter(
        &self,
        id: &JobId,
        tenant: Option<&str>,
    ) -> Result<ActionOutcome, StoreError> {
        self.0
            .write((id.clone(), tenant.map(str::to_owned)), |tx, (id, tenant)| {
                Box::pin(ops::delete(&mut tx.session, &mut tx.unit, id, tenant.as_deref()))
            })
            .await
    }

    /// Applies one action to all jobs that a filter finds, in transactions of bounded size.
    #[boxed]
    pub async fn bulk(&self, bulk: Bulk) -> Result<BulkOutcome, StoreError> {
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

    /// Returns how many jobs ended from `since` on, by state.
    #[boxed]
    pub async fn ended(
        &self,
        tenant: Option<&str>,
        since: Timestamp,
    ) -> Result<Vec<(JobState, u64)>, StoreError> {
        let values = [since.0.into(), tenant.into()];
        many(&self.0.readers, "count ended jobs", &sql::SELECT_ENDED_RECENTLY, &values, |row| {
            let jobs: i64 = get(row, "jobs")?;
            Ok((get::<JobState>(row, "state")?, jobs.unsigned_abs()))
        })
        .await
    }

    /// Returns a tenant's ended jobs per hour, newest first, from `since` on, of those that are still kept.
    #[boxed]
    pub async fn history_of(&self, tenant: &str, since: Timestamp) -> Result<Vec<HourlyCount>, StoreError> {
        let (action, values) = ("count ended jobs", [since.0.into(), tenant.into()]);
        many(&self.0.readers, action, &sql::SELECT_ENDED_PER_HOUR, &values, rows::decode).await
    }

    /// Tenants that have jobs, by name, and how many there are in total.
    #[boxed]
    pub async fn tenants(
        &self,
        tenant: Option<&str>,
        page: Page,
    ) -> Result<(Vec<TenantTotal>, u64), StoreError> {
        let (action, text) = ("count tenants", &sql::SELECT_TENANT_COUNT);
        let decode = |row: &Row| get::<i64>(row, "tenants");
        let total = one(&self.0.readers, action, text, &[tenant.into()], decode).await?;
        let values = [tenant.into(), page.limit.into(), page.offset.into()];
        let tenants = many(&self.0.readers, "list tenants", &sql::SELECT_TENANTS, &values, |row| {
            Ok(TenantTotal {
                tenant: get(row, "tenant")?,
                jobs: get(row, "jobs")?,
                unfinished: get(row, "unfinished")?,
                last_at: get(row, "last_at")?,
            })
        })
        .await?;
        Ok((tenants, total.unwrap_or_default().unsigned_abs()))
    }

    /// Deletes everything but agents, keys and what keeps the fleet together. Workers continue; jobs in flight lose
    /// their leases.
    #[boxed]
    pub async fn reset(&self) -> Result<(), StoreError> {
        self.0.write((), |tx, ()| Box::pin(ops::reset(&mut tx.session))).await?;
        self.0.held.forget();
        Ok(())
    }

    async fn several(
        &self,
        bulk: &Bulk,
        action: JobAction,
        ids: Vec<JobId>,
    ) -> Result<(Vec<JobId>, Vec<(JobId, JobState)>), StoreError> {
        let requested = (action, ids, bulk.dead_letters, bulk.at);
        self.0
            .write(requested, |tx, (action, ids, dead_letters, at)| {
                Box::pin(ops::several(&mut tx.session, &mut tx.unit, *action, ids, *dead_letters, *at))
            })
            .await
    }

    /// Returns the next jobs that a filter finds after `after`, with their positions in the order of acceptance.
    async fn found(
        &self,
        bulk: &Bulk,
        filter: &JobFilter,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, JobId)>, StoreError> {
        let (text, mut values) = chosen(
            bulk,
            filter,
            of_tag(filter, &sql::SELECT_JOBS_BY_TEXT, &sql::SELECT_TAGGED_JOBS_BY_TEXT),
            &sql::SELECT_DEAD_JOBS_BY_TEXT,
        );
        values.push(after.into());
        values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        all(&self.0.readers, "look for jobs", text, &values, |row| {
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
        let (text, values) = chosen(
            bulk,
            filter,
            of_tag(filter, &sql::SELECT_JOB_COUNTS, &sql::SELECT_TAGGED_JOB_COUNTS),
            &sql::SELECT_DEAD_COUNT,
        );
        let count = one(&self.0.readers, "count jobs", text, &values, |row| get::<i64>(row, "jobs")).await?;
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
                // In a transaction of its own, so that those who wait for the jobs are notified.
                self.several(bulk, JobAction::Cancel, ids.clone()).await?;
            }
            let (done, refused) = self.several(bulk, bulk.action, ids).await?;
            outcome.done.extend(done);
            outcome.refused.extend(refused);
        }
    }
}
