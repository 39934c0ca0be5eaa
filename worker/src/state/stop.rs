//! The reasons why a turn stops before its end.

use turnstone_domain::budget::{Amount, Measure, delegate_named};
use turnstone_domain::checkpoint::Shortage;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, JobId, Wait};
use turnstone_store::{LedgerError, StoreError, unreadable};

/// The reason why a turn stops before its end. Any function of a turn may return one, and `conclude` of `turn/mod.rs`
/// decides its consequence for the job. `?` makes one of a [`JobError`], a [`LedgerError`] and a [`StoreError`].
#[derive(Debug)]
pub enum Stop {
    /// The attempt failed: the agent's handlers and the job's retry policy decide if there is another one.
    Fail(JobError),
    /// The job waits for an event outside of the turn, and holds no slot, lease or reservation until then.
    Park(Box<Wait>),
    /// The worker drains, or the job is paused: it resumes from its last checkpoint, in another worker or later. It is
    /// no failure.
    Drain,
    /// The lease is lost, and another worker may hold the job. Write nothing.
    LeaseLost(JobId),
    /// The store failed. The lease expires by itself, and the job resumes from its last checkpoint.
    Store(StoreError),
}

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::LeaseLost(job) => Self::LeaseLost(job),
            LedgerError::Store(error) => error.into(),
            LedgerError::StateConflict => Self::Fail(state_conflict()),
            LedgerError::BudgetExceeded { left, needed, of } => {
                Self::Fail(too_little(&Shortage { left, needed, of: *of }))
            }
            LedgerError::Unpriced { budget, currency } => {
                Self::Fail(unpriced(&budget, currency.as_deref(), "PROVIDER/MODEL", "another currency"))
            }
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        if error.is_damage() {
            return Self::Fail(unreadable(&error.to_string()));
        }
        Self::Store(error)
    }
}

impl From<Wait> for Stop {
    fn from(wait: Wait) -> Self {
        Self::Park(Box::new(wait))
    }
}

impl From<JobError> for Stop {
    fn from(error: JobError) -> Self {
        Self::Fail(error)
    }
}

/// Returns the error of a budget that has too little left. The call may need so many tokens, and so much money, for an answer of
/// the usual length, and `shortage.needed` for the shortest one.
pub fn too_little_for(shortage: Shortage, (tokens, money): (i64, Option<i64>)) -> JobError {
    let needed = match shortage.of.measure {
        Measure::Tokens => tokens,
        Measure::Money => money.unwrap_or_default(),
    };
    let least = shortage.needed;
    let error = too_little(&Shortage { needed: needed.max(least), ..shortage });
    if needed > least { error.with("least", least) } else { error }
}

/// Returns the error of a budget that has too little left.
pub fn too_little(Shortage { left, needed, of }: &Shortage) -> JobError {
    let (left, needed) = (*left, *needed);
    let name = of.name.as_deref();
    let amount = |value: i64| match of.measure {
        Measure::Tokens => format!("{value} tokens"),
        Measure::Money => format!("{} of money", Amount(value)),
    };
    let day = if of.resets_at.is_some() { " for today" } else { "" };
    let what = name.map_or_else(|| "the engagement's budget".to_owned(), |name| format!("budget {name}"));
    let next = match (name, of.resets_at) {
        (Some(name), _) if let Some(id) = delegate_named(name) => {
            format!("raise it with `turnstone budget raise --engagement {id} --tokens N`")
        }
        (Some(name), Some(at)) => {
            format!("raise it with `turnstone budget raise {name}`, or wait until it begins anew at {at}")
        }
        (Some(name), None) => format!("raise it with `turnstone budget raise {name}`"),
        (None, _) => {
            "raise it with `turnstone budget raise --engagement ID`, or enqueue the work again with a larger \
                      budget"
                .to_owned()
        }
    };
    let message = format!(
        "the next call may need up to {}, but {} are left of {what}{day}; {next}",
        amount(needed),
        amount(left)
    );
    let mut error = JobError::new(FailureKind::TokenBudget, message)
        .with("left", left)
        .with("needed", needed)
        .with("limit", of.limit)
        .with("settled", of.settled);
    if name.is_some() || of.measure == Measure::Money {
        let unit = if of.measure == Measure::Money { "money" } else { "tokens" };
        error = error.with("unit", unit);
    }
    if let Some(name) = name {
        error = error.with("budget", name);
    }
    if let Some(word) = of.on_exceed {
        error = error.with("on_exceed", word.as_str());
    }
    match of.resets_at {
        Some(at) => error.with("resets_at", at.to_rfc3339()),
        None => error,
    }
}

/// Returns the error of a call without a price in the currency of a budget in money, which could not bound
/// it. The call does not run.
pub fn unpriced(budget: &str, wanted: Option<&str>, model: &str, priced_in: &str) -> JobError {
    let message = match wanted {
        None => format!(
            "budget {budget} is in money and {model} has no price, so that nothing would bound what it costs; add \
             [prices.\"{model}\"] to the workers' configuration"
        ),
        Some(currency) => format!(
            "budget {budget} is in {currency} and the price of {model} is in {priced_in}; set the budget in the currency \
             of the price table"
        ),
    };
    // No further attempt changes the configuration.
    let error = JobError::new(FailureKind::ModelUnavailable, message).with("budget", budget);
    error.for_good()
}

/// Returns the error of an exhausted budget (agent extension §3).
pub fn budget_exceeded(left: i64, needed: i64) -> JobError {
    let message = format!(
        "the next model call may need up to {needed} tokens, but {left} are left of the budget; \
         enqueue the work again with a larger ext_agent_token_budget"
    );
    JobError::new(FailureKind::TokenBudget, message).with("left", left).with("needed", needed)
}

/// Returns the error of a turn whose state was changed by another one meanwhile.
pub fn state_conflict() -> JobError {
    let message = "another turn changed the state that this turn had read; the changes of this turn are rolled back, and it runs again";
    JobError::new(FailureKind::State, message)
}
