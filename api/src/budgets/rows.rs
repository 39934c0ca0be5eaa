//! The shapes of budgets and spending in responses.

use super::date;
use serde::Serialize;
use turnstone_domain::budget::{Amount, Budget, BudgetRule, OnExceed, Purse, WARN_AT};
use turnstone_store::{BudgetRow, SharedBudget};
use utoipa::ToSchema;

/// Tokens of a budget.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tokens {
    used: i64,
    reserved: i64,
    limit: Option<i64>,
    left: Option<i64>,
}

/// Money of a budget, as decimals in units of the currency.
#[derive(Serialize, ToSchema)]
pub(crate) struct Money {
    used: String,
    reserved: String,
    limit: Option<String>,
    left: Option<String>,
}

/// A row of a shared budget.
#[derive(Serialize, ToSchema)]
pub(super) struct Row {
    /// The day of UTC; `null` counts the whole lifetime.
    day: Option<String>,
    tokens: Tokens,
    cost: Money,
    /// retry, park or fail.
    #[schema(value_type = Option<String>)]
    on_exceed: Option<OnExceed>,
    /// Jobs that wait for it.
    waiting: u64,
}

/// The limits of a shared budget.
#[derive(Serialize, ToSchema)]
pub(super) struct Limits {
    tokens: Option<i64>,
    tokens_per_day: Option<i64>,
    cost: Option<String>,
    cost_per_day: Option<String>,
}

/// A shared budget.
#[derive(Serialize, ToSchema)]
pub(super) struct BudgetView {
    name: String,
    /// fleet, tenant, agent or model.
    scope: &'static str,
    currency: String,
    /// retry, park or fail; `null` leaves it to the server.
    #[schema(value_type = Option<String>)]
    on_exceed: Option<OnExceed>,
    /// The percentage of a limit at which a warning is given.
    warn_at: i64,
    limits: Limits,
    /// Spending, newest day first.
    rows: Vec<Row>,
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
            on_exceed: budget.on_exceed,
            waiting: row.waiting,
        }
    }
}

impl From<&SharedBudget> for BudgetView {
    fn from(budget: &SharedBudget) -> Self {
        let rule = &budget.rule;
        Self {
            name: rule.name.to_string(),
            scope: rule.name.scope(),
            currency: rule.currency.clone(),
            on_exceed: rule.on_exceed,
            warn_at: rule.warn_at.unwrap_or(WARN_AT),
            limits: Limits {
                tokens: rule.tokens,
                tokens_per_day: rule.tokens_per_day,
                cost: rule.cost.map(money),
                cost_per_day: rule.cost_per_day.map(money),
            },
            rows: budget.rows.iter().map(|of_day| Row::of(rule, of_day)).collect(),
        }
    }
}
