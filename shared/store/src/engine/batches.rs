//! Batches: the jobs with one tag, as a unit.

use super::Engine;
use super::ops::batches as ops;
use super::rows::get;
use super::session::{Arg, Row};
use super::views::{many, one};
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::{JobState, Timestamp};

/// The jobs with one tag, added up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// How many jobs are in each state; a state without jobs is left out.
    pub states: Vec<(JobState, u64)>,
    /// The codes of the last errors of jobs that failed, the most frequent first, each with its jobs.
    pub errors: Vec<(String, u64)>,
    /// Open reviews about its jobs.
    pub open_reviews: u64,
    /// The tokens that the engagements of its jobs used, their delegates included.
    pub tokens_used: i64,
    /// Tokens that calls under way have reserved.
    pub tokens_reserved: i64,
    /// The cost of the engagements, in millionths.
    pub cost_used: i64,
    /// Money that calls under way have reserved, in millionths.
    pub cost_reserved: i64,
    /// When the first job was accepted.
    pub first_at: Option<Timestamp>,
    /// When the latest end of a job was.
    pub last_ended_at: Option<Timestamp>,
    /// When it was closed: no more jobs are expected.
    pub closed_at: Option<Timestamp>,
    /// When its end was noted, after it was closed and every job had ended.
    pub ended_at: Option<Timestamp>,
}

impl Batch {
    /// Returns how many jobs it has.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.states.iter().map(|(_, jobs)| jobs).sum()
    }

    /// Returns how many of its jobs are in one of these states.
    #[must_use]
    pub fn jobs_in(&self, states: &[JobState]) -> u64 {
        self.states.iter().filter(|(state, _)| states.contains(state)).map(|(_, jobs)| jobs).sum()
    }
}

/// Batches. `tenant` limits each call to the jobs of one tenant; `None` means any.
#[derive(Clone)]
pub struct Batches(pub(super) Arc<Engine>);

impl Batches {
    /// Returns the batch of a tag. A tag that no job has gives a batch without jobs.
    #[boxed]
    pub async fn batch(&self, tag: &str, tenant: Option<&str>) -> Result<Batch, StoreError> {
        let (readers, values) = (&self.0.readers, [tag.into(), tenant.into()]);
        let mut batch = Batch::default();
        let decode = |row: &Row| {
            let times = (get::<Option<i64>>(row, "first_at")?, get::<Option<i64>>(row, "last_at")?);
            Ok((get::<JobState>(row, "state")?, get::<i64>(row, "jobs")?, times))
        };
        let states = many(readers, "count jobs of a batch", &sql::SELECT_BATCH_STATES, &values, decode);
        for (state, jobs, (first, last)) in states.await? {
            batch.states.push((state, jobs.unsigned_abs()));
            batch.first_at = batch.first_at.into_iter().chain(first.map(Timestamp)).min();
            batch.last_ended_at = batch.last_ended_at.max(last.map(Timestamp));
        }
        let decode = |row: &Row| Ok((get::<String>(row, "code")?, get::<i64>(row, "jobs")?.unsigned_abs()));
        batch.errors =
            many(readers, "count errors of a batch", &sql::SELECT_BATCH_ERRORS, &values, decode).await?;
        let decode = |row: &Row| get::<i64>(row, "reviews");
        let reviews = one(readers, "count reviews of a batch", &sql::SELECT_BATCH_REVIEWS, &values, decode);
        batch.open_reviews = reviews.await?.unwrap_or_default().unsigned_abs();
        let decode = |row: &Row| {
            let tokens = (get::<i64>(row, "tokens_used")?, get::<i64>(row, "tokens_reserved")?);
            Ok((tokens, (get::<i64>(row, "cost_used")?, get::<i64>(row, "cost_reserved")?)))
        };
        let spent = one(readers, "add up a batch", &sql::SELECT_BATCH_SPENDING, &values, decode).await?;
        ((batch.tokens_used, batch.tokens_reserved), (batch.cost_used, batch.cost_reserved)) =
            spent.unwrap_or_default();
        let decode = |row: &Row| Ok((get::<i64>(row, "closed_at")?, get::<Option<i64>>(row, "ended_at")?));
        let values = [tag.into(), tenant.unwrap_or_default().into()];
        let closed = one(readers, "read a batch", &sql::SELECT_BATCH, &values, decode).await?;
        batch.closed_at = closed.map(|(closed_at, _)| Timestamp(closed_at));
        batch.ended_at = closed.and_then(|(_, ended_at)| ended_at).map(Timestamp);
        Ok(batch)
    }

    /// Closes the batch of a tag: once all of its jobs have ended, the scheduler notes its end. A batch that ended and
    /// received further jobs is closed anew. Returns false when no job has the tag, and then nothing changes.
    #[boxed]
    pub async fn close(&self, tag: &str, tenant: Option<&str>, now: Timestamp) -> Result<bool, StoreError> {
        let requested = (tag.to_owned(), tenant.map(str::to_owned), now);
        self.0
            .write(requested, |tx, (tag, tenant, now)| {
                Box::pin(ops::close(&mut tx.session, tag, tenant.as_deref(), *now))
            })
            .await
    }
}

/// Reads a count of a closed batch, as the scheduler does.
pub(super) fn of_closed<'a>(tag: &'a str, tenant: &'a str) -> [Arg<'a>; 2] {
    [tag.into(), Some(tenant).filter(|tenant| !tenant.is_empty()).into()]
}
