//! Batches: the jobs with one tag, as a unit.

mod close;
pub(crate) mod routes;
mod show;

use serde::Serialize;
use serde_json::{Map, Value};
use turnstone_domain::budget::Amount;
use turnstone_domain::{JobState, Timestamp};
use turnstone_store::Batch;
use utoipa::ToSchema;

/// Jobs with the same last error.
#[derive(Serialize, ToSchema)]
struct BatchError {
    code: String,
    jobs: u64,
}

/// Spending in tokens.
#[derive(Serialize, ToSchema)]
struct BatchTokens {
    used: i64,
    reserved: i64,
}

/// Spending in money, as decimals in units of the currency.
#[derive(Serialize, ToSchema)]
struct BatchMoney {
    used: String,
    reserved: String,
}

/// The jobs with one tag.
#[derive(Serialize, ToSchema)]
struct BatchView {
    tag: String,
    /// All jobs.
    jobs: u64,
    /// The jobs that have not ended.
    open: u64,
    /// The jobs by state; each of the eight states is there.
    states: Map<String, Value>,
    /// The last errors of failed jobs, the most frequent first.
    errors: Vec<BatchError>,
    /// Open reviews about the jobs.
    open_reviews: u64,
    /// Of the jobs' engagements, delegates included.
    tokens: BatchTokens,
    /// Of the jobs' engagements, delegates included.
    cost: BatchMoney,
    first_enqueued_at: Option<String>,
    last_ended_at: Option<String>,
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
        let in_state = |state: JobState| (state.as_str().to_owned(), batch.jobs_in(&[state]).into());
        let error = |(code, jobs): &(String, _)| BatchError { code: code.clone(), jobs: *jobs };
        Self {
            tag,
            jobs: batch.jobs(),
            open: batch.jobs_in(&open),
            states: JobState::ALL.into_iter().map(in_state).collect(),
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
