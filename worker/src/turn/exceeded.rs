//! A budget that has not enough left: the job is retried, parked until the budget is raised, or discarded.

use crate::state::{Outbox, TurnHistory};
use serde_json::Value;
use std::time::Duration;
use turnstone_domain::budget::{BudgetWait, Measure, OnExceed};
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::Overspending;
use turnstone_domain::{JobError, Settlement, Timestamp, Wait};

/// Returns the settlement of a job by the budget's own rule; `None` leaves it to the retry policy.
pub fn settlement(past: &mut TurnHistory, outbox: &mut Outbox, error: &JobError) -> Option<Settlement> {
    if error.kind != FailureKind::TokenBudget {
        return None;
    }
    let said = error.details.get("on_exceed").and_then(|word| OnExceed::parse(word.as_str()?));
    match said.unwrap_or(outbox.claimed.deps.options.on_exceed) {
        OnExceed::Retry => None,
        OnExceed::Park => Some(park(past, outbox, error)),
        OnExceed::Fail => {
            past.roll_back_state(outbox, error, true);
            Some(Settlement::Discard { error: error.clone() })
        }
    }
}

/// Parks the job until the budget is raised, within a bound since its first wait for a raise.
fn park(past: &mut TurnHistory, outbox: &mut Outbox, error: &JobError) -> Settlement {
    let (now, patience) = (outbox.claimed.deps.clock.now(), outbox.claimed.deps.options.raise_wait);
    let longest = |patience: Duration| now.plus_ms(i64::try_from(patience.as_millis()).unwrap_or(i64::MAX));
    let until = outbox.position.raise_until.or_else(|| patience.map(longest));
    if let Some(until) = until.filter(|until| *until <= now) {
        past.roll_back_state(outbox, error, true);
        let message = format!("{}; it was not raised until {}", error.message, until.to_rfc3339());
        return Settlement::Discard { error: JobError { message, retryable: false, ..error.clone() } };
    }
    outbox.position.raise_until = until;
    outbox.next_position().raise_until = until;
    Settlement::Park { wait: Wait::Raise(BudgetWait { until, ..BudgetWait::after(error) }) }
}

/// Returns the data of the timeline's event.
pub fn event_data(outbox: &Outbox, error: &JobError) -> Overspending {
    let amount = |key: &str| error.details.get(key).and_then(Value::as_i64);
    let fact = |key: &str| error.details.get(key).and_then(Value::as_str);
    Overspending {
        limit: amount("limit").or(outbox.budget.limit),
        settled: amount("settled").or(Some(outbox.budget.settled)),
        needed: amount("needed"),
        budget: fact("budget").map(str::to_owned),
        unit: fact("unit").map(|unit| if unit == "money" { Measure::Money } else { Measure::Tokens }),
    }
}

/// Returns the time of the next try: for a daily budget not before the next day.
pub fn not_before(error: &JobError, run_at: Timestamp) -> Timestamp {
    if error.kind != FailureKind::TokenBudget || error.is_of_reservations() {
        return run_at;
    }
    BudgetWait::after(error).resets_at.map_or(run_at, |resets_at| run_at.max(resets_at))
}
