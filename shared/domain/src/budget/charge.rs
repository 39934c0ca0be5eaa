//! The budgets that a call is charged to, and the outcome when too little is left.

use super::{Budget, OnExceed};
use crate::{CallId, JobError, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The unit of a limit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Tokens.
    Tokens,
    /// Millionths of a currency.
    Money,
}

/// The price of a call in money, and the shared budgets that it is charged to beside its engagement's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Charge {
    /// The thing that is paid for, such as `model openai/gpt-4o-mini`; messages about the charge name it.
    pub what: String,
    /// Millionths of the currency; `None` when it has no price, so that no budget in money can limit it.
    pub money: Option<i64>,
    /// ISO 4217.
    pub currency: String,
    /// The names of the shared budgets that apply.
    pub budgets: Vec<String>,
}

/// One movement of money and of shared budgets, applied in the same transaction as the call's own write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChargeMove {
    /// With [`super::BudgetMove::Reserve`]: reserves the same tokens and the money in every budget that applies, or
    /// in none. It replaces the job's earlier reservation.
    Reserve(Charge),
    /// With [`super::BudgetMove::Settle`]: returns every reservation of the job, and books the tokens and this money.
    Settle {
        /// The booked amount; more than was reserved when the call cost more.
        money: i64,
        /// The tool calls it is for, with their prices.
        calls: Vec<(CallId, i64)>,
    },
    /// Books money at once, for a call whose price is known before it is made.
    Spend {
        /// The price, and the budgets that it is charged to.
        charge: Charge,
        /// The tool calls it is for, with their prices.
        calls: Vec<(CallId, i64)>,
    },
}

/// The budget that has too little left for a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Short {
    /// Its name; `None` is the budget of the engagement and its delegates.
    pub name: Option<String>,
    /// The unit that is short.
    pub measure: Measure,
    /// Its limit.
    pub limit: i64,
    /// The spent amount.
    pub settled: i64,
    /// The treatment of the job; `None` leaves it to the server.
    pub on_exceed: Option<OnExceed>,
    /// The time at which it is reset, if it counts per day.
    pub resets_at: Option<Timestamp>,
}

/// The budget that a job waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetWait {
    /// The budget's name; `None` is that of its engagement.
    pub name: Option<String>,
    /// The time at which it is reset, if it counts per day.
    pub resets_at: Option<Timestamp>,
    /// The unit that was short.
    pub measure: Measure,
    /// The most that the call may need.
    pub needed: Option<i64>,
    /// The least that lets it be made, with a shorter answer; `None` when it is all of `needed`.
    pub least: Option<i64>,
    /// The time at which waiting ends; `None` is never.
    pub until: Option<Timestamp>,
}

impl BudgetWait {
    /// Returns the budget that a job waits for after this error; `None` when it is no budget error.
    #[must_use]
    pub fn after(error: &JobError) -> Self {
        let text = |key: &str| error.details.get(key).and_then(Value::as_str);
        Self {
            name: text("budget").map(str::to_owned),
            resets_at: text("resets_at").and_then(Timestamp::parse_rfc3339),
            measure: if text("unit") == Some("money") { Measure::Money } else { Measure::Tokens },
            needed: error.details.get("needed").and_then(Value::as_i64),
            least: error.details.get("least").and_then(Value::as_i64),
            until: None,
        }
    }

    /// Returns true if the call would fit into this budget without the reservations of calls under way.
    #[must_use]
    pub fn fits(&self, budget: &Budget) -> bool {
        let purse = budget.purse(self.measure);
        let room = purse.limit.map_or(i64::MAX, |limit| limit.saturating_sub(purse.settled));
        self.least.or(self.needed).is_some_and(|needed| needed <= room)
    }
}
