//! The shapes of budgets and spending in responses.

use super::date;
use crate::answers::AwaitedBudget;
use serde::{Deserialize, Serialize};
use turnstone_domain::budget::{Amount, Budget, BudgetRule, OnExceed, Purse, WARN_AT};
use turnstone_ojs::OpenValue;
use turnstone_store::{BudgetRow, SharedBudget};
use utoipa::ToSchema;

/// Tokens of a budget.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Tokens {
    /// Spent.
    pub used: i64,
    /// Reserved for calls in flight.
    pub reserved: i64,
    /// The most.
    pub limit: Option<i64>,
    left: Option<i64>,
}

/// Money of a budget, as decimals in units of the currency.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Money {
    /// Spent.
    pub used: String,
    /// Reserved for calls in flight.
    pub reserved: String,
    /// The most.
    pub limit: Option<String>,
    left: Option<String>,
}

/// A row of a shared budget.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Row {
    /// The day of UTC; `null` counts the whole lifetime.
    pub day: Option<String>,
    /// Its tokens.
    pub tokens: Tokens,
    /// Its money.
    pub cost: Money,
    /// retry, park or fail.
    #[schema(value_type = Option<String>)]
    on_exceed: Option<OpenValue<OnExceed>>,
    /// Jobs that wait for it.
    pub waiting: u64,
}

/// The limits of a shared budget.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Limits {
    /// Tokens altogether.
    pub tokens: Option<i64>,
    /// Tokens per day of UTC.
    pub tokens_per_day: Option<i64>,
    /// Money altogether.
    pub cost: Option<String>,
    /// Money per day of UTC.
    pub cost_per_day: Option<String>,
}

/// A shared budget.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct BudgetView {
    /// Its name.
    pub name: String,
    /// fleet, tenant, agent or model.
    scope: String,
    /// ISO 4217.
    pub currency: String,
    /// retry, park or fail; `null` leaves it to the server.
    #[schema(value_type = Option<String>)]
    pub on_exceed: Option<OpenValue<OnExceed>>,
    /// The percentage of a limit at which a warning is given.
    pub warn_at: i64,
    /// The limits.
    pub limits: Limits,
    /// Spending, newest day first.
    pub rows: Vec<Row>,
    /// The need of the oldest job that waits for it; absent in lists, and when no job waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaited: Option<AwaitedBudget>,
}

/// Returns an amount as a decimal.
pub(super) fn money(amount: i64) -> String {
    Amount(amount).to_string()
}

impl From<&Purse> for Money {
    fn from(purse: &Purse) -> Self {
        Self {
            used: money(purse.settled),
            reserved: money(purse.reserved),
            limit: purse.limit.map(money),
            left: purse.left().map(money),
        }
    }
}

impl From<&Budget> for Tokens {
    fn from(budget: &Budget) -> Self {
        let (used, reserved) = (budget.settled, budget.reserved);
        Self { used, reserved, limit: budget.limit, left: budget.left() }
    }
}

impl Row {
    /// Returns a row with the limits that are set. The stored balance is never less than the spending.
    fn of(rule: &BudgetRule, row: &BudgetRow) -> Self {
        let mut budget = row.budget;
        (budget.limit, budget.money.limit) = match row.day {
            Some(_) => (rule.tokens_per_day, rule.cost_per_day),
            None => (rule.tokens, rule.cost),
        };
        Self {
            day: row.day.map(date),
            tokens: Tokens::from(&budget),
            cost: Money::from(&budget.money),
            on_exceed: budget.on_exceed.map(OpenValue::from),
            waiting: row.waiting,
        }
    }
}

impl BudgetView {
    /// Returns the budget with the need of a job that waits for it.
    pub(super) fn with_awaited(self, awaited: Option<AwaitedBudget>) -> Self {
        Self { awaited, ..self }
    }
}

impl From<&SharedBudget> for BudgetView {
    fn from(budget: &SharedBudget) -> Self {
        let rule = &budget.rule;
        Self {
            name: rule.name.to_string(),
            scope: rule.name.scope().to_owned(),
            currency: rule.currency.clone(),
            on_exceed: rule.on_exceed.map(OpenValue::from),
            warn_at: rule.warn_at.unwrap_or(WARN_AT),
            limits: Limits {
                tokens: rule.tokens,
                tokens_per_day: rule.tokens_per_day,
                cost: rule.cost.map(money),
                cost_per_day: rule.cost_per_day.map(money),
            },
            rows: budget.rows.iter().map(|of_day| Row::of(rule, of_day)).collect(),
            awaited: None,
        }
    }
}
