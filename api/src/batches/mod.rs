//! Batches: the jobs with one tag, as a unit.

mod close;
pub(crate) mod routes;
mod show;

use crate::counts::StateCounts;
use serde::{Deserialize, Serialize};
use turnstone_domain::budget::Amount;
use turnstone_domain::{JobState, Timestamp};
use turnstone_store::Batch;
use utoipa::ToSchema;

/// Jobs with the same last error.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchError {
    /// Its stable code.
    pub code: String,
    jobs: u64,
}

/// Spending in tokens.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchTokens {
    /// Spent.
    pub used: i64,
    reserved: i64,
}

/// Spending in money, as decimals in units of the currency.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchMoney {
    /// Spent.
    pub used: String,
    reserved: String,
}

/// The jobs with one tag.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchView {
    /// The tag.
    pub tag: String,
    /// All jobs.
    pub jobs: u64,
    /// The jobs that have not ended.
    pub open: u64,
    /// The jobs by state; each of the eight states is there.
    pub states: StateCounts,
    /// The last errors of failed jobs, the most frequent first.
    pub errors: Vec<BatchError>,
    /// Open reviews about the jobs.
    pub open_reviews: u64,
    /// Of the jobs' engagements, delegates included.
    pub tokens: BatchTokens,
    /// Of the jobs' engagements, delegates included.
    pub cost: BatchMoney,
    /// When the first job was accepted.
    pub first_enqueued_at: Option<String>,
    /// When the last job ended.
    pub last_ended_at: Option<String>,
    /// When the batch was closed.
    closed_at: Option<String>,
    /// When the event `batch.ended` was written.
    ended_at: Option<String>,
}

impl BatchView {
    fn of(tag: String, batch: &Batch) -> Self {
        let open: Vec<JobState> = JobState::ALL.into_iter().filter(|state| !state.is_terminal()).collect();
        let money = |amount: i64| Amount(amount).to_string();
        let time = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        let in_state = |state: JobState| (state, batch.jobs_in(&[state]));
        let error = |(code, jobs): &(String, _)| BatchError { code: code.clone(), jobs: *jobs };
        Self {
            tag,
            jobs: batch.jobs(),
            open: batch.jobs_in(&open),
            states: StateCounts::of(JobState::ALL.map(in_state)),
            errors: batch.errors.iter().map(error).collect(),
            open_reviews: batch.open_reviews,
            tokens: BatchTokens { used: batch.tokens_used, reserved: batch.tokens_reserved },
            cost: BatchMoney { used: money(batch.cost_used), reserved: money(batch.cost_reserved) },
            first_enqueued_at: time(batch.first_at),
            last_ended_at: time(batch.last_ended_at),
            closed_at: time(batch.closed_at),
            ended_at: time(batch.ended_at),
        }
    }
}
