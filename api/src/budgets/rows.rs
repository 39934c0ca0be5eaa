//! The shapes of budgets and spending in responses.

use super::date;
use serde_json::{Value, json};
use turnstone_domain::budget::{Amount, Budget, BudgetRule, Purse, WARN_AT};
use turnstone_store::{BudgetRow, SharedBudget, Spending};
use utoipa::ToSchema;

/// Tokens of a budget.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Tokens {
    used: i64,
    reserved: i64,
    limit: Option<i64>,
    left: Option<i64>,
}

/// Money of a budget, as decimals in units of the currency.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Money {
    used: String,
    reserved: String,
    limit: Option<String>,
    left: Option<String>,
}

/// A row of a shared budget.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Row {
    /// The day of UTC; `null` counts the whole lifetime.
    day: Option<String>,
    tokens: Tokens,
    cost: Money,
    /// Jobs that wait for it.
    waiting: u64,
}

/// The limits of a shared budget.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Limits {
    tokens: Option<i64>,
    tokens_per_day: Option<i64>,
    cost: Option<String>,
    cost_per_day: Option<String>,
}

/// A shared budget.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct BudgetView {
    name: String,
    /// fleet, tenant, agent or model.
    scope: String,
    currency: String,
    /// retry, park or fail; `null` leaves it to the server.
    on_exceed: Option<String>,
    /// The percentage of a limit at which a warning is given.
    warn_at: i64,
    limits: Limits,
    /// Spending, newest day first.
    rows: Vec<Row>,
}

fn money(amount: i64) -> Value {
    Amount(amount).to_string().into()
}

/// Returns the money of a budget.
pub(crate) fn purse(purse: &Purse) -> Value {
    json!({
        "used": money(purse.settled),
        "reserved": money(purse.reserved),
        "limit": purse.limit.map(money),
        "left": purse.left().map(money),
    })
}

/// Both sides of a budget.
pub(super) fn sides(budget: &Budget) -> Value {
    json!({
        "tokens": {
            "used": budget.settled,
            "reserved": budget.reserved,
            "limit": budget.limit,
            "left": budget.left(),
        },
        "cost": purse(&budget.money),
        "on_exceed": budget.on_exceed,
    })
}

/// Returns a row with the limits that are set. The stored balance is never less than the spending.
fn row(rule: &BudgetRule, row: &BudgetRow) -> Value {
    let mut budget = row.budget;
    (budget.limit, budget.money.limit) = match row.day {
        Some(_) => (rule.tokens_per_day, rule.cost_per_day),
        None => (rule.tokens, rule.cost),
    };
    let mut shown = sides(&budget);
    shown["day"] = row.day.map(date).into();
    shown["waiting"] = row.waiting.into();
    shown
}

/// Returns a shared budget.
pub(super) fn shared(budget: &SharedBudget) -> Value {
    let rule = &budget.rule;
    json!({
        "name": rule.name.to_string(),
        "scope": rule.name.scope(),
        "currency": rule.currency,
        "on_exceed": rule.on_exceed,
        "warn_at": rule.warn_at.unwrap_or(WARN_AT),
        "limits": {
            "tokens": rule.tokens,
            "tokens_per_day": rule.tokens_per_day,
            "cost": rule.cost.map(money),
            "cost_per_day": rule.cost_per_day.map(money),
        },
        "rows": budget.rows.iter().map(|of_day| row(rule, of_day)).collect::<Vec<_>>(),
    })
}

/// Returns the spending.
pub(super) fn spending(spent: &Spending) -> Value {
    json!({
        "runs": spent.runs,
        "duration_ms": spent.duration_ms,
        "tokens_in": spent.tokens_in,
        "tokens_cached": spent.tokens_cached,
        "tokens_out": spent.tokens_out,
        "cost": money(spent.cost),
    })
}
