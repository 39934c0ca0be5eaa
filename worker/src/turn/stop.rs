//! Why a turn stops before its end.

use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, JobId, Wait};
use turnstone_store::{LedgerError, StoreError};

/// Why a turn stops. `turn/mod.rs` decides in one place what each means for the job.
#[derive(Debug)]
pub enum Stop {
    /// The attempt failed.
    Fail(JobError),
    /// It cannot go on before something else has happened, and holds no slot until then.
    Park(Box<Wait>),
    /// The worker drains, or the job is paused: it goes on from the last checkpoint, elsewhere or later.
    Drain,
    /// Somebody else owns the job now. Touch nothing.
    LeaseLost(JobId),
    /// The store failed. The lease runs out by itself and the job goes on from its last checkpoint.
    Store(StoreError),
}

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::LeaseLost(job) => Self::LeaseLost(job),
            LedgerError::Store(error) => Self::Store(error),
            LedgerError::StateConflict => Self::Fail(state_conflict()),
            LedgerError::BudgetExceeded { left, needed } => Self::Fail(budget_exceeded(left, needed)),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<JobError> for Stop {
    fn from(error: JobError) -> Self {
        Self::Fail(error)
    }
}

/// The error of an exhausted budget (agent extension §3).
pub fn budget_exceeded(left: i64, needed: i64) -> JobError {
    let message = format!(
        "the next model call may need up to {needed} tokens, but {left} are left of the budget; \
         enqueue the work again with a larger ext_agent_token_budget"
    );
    JobError::new(FailureKind::TokenBudget, message).with("left", left).with("needed", needed)
}

/// The error of a turn whose state was changed by another one meanwhile.
pub fn state_conflict() -> JobError {
    let message = "another turn changed the state that this turn had read; its own changes are rolled back, and it is run again";
    JobError::new(FailureKind::State, message)
}
