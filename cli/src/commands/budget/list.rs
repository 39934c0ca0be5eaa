//! `turnstone budget list`: budgets with their rest.

use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use std::process::ExitCode;
use turnstone_api::answers::BudgetView;
use turnstone_domain::budget::OnExceed;

const COLUMNS: &[Column<BudgetView>] = &[
    column("BUDGET", |budget| plain(&budget.name)),
    column("TOKENS", tokens),
    column("COST", cost),
    column("PER", period),
    column("WHEN EXCEEDED", on_exceed),
    column("WAITING", |budget| budget.rows.iter().map(|row| row.waiting).sum::<u64>().to_string()),
];

/// Returns true if an unspent budget is one per day.
/// Returns the effect on a job that needs more.
pub(super) fn on_exceed(budget: &BudgetView) -> String {
    budget.on_exceed.as_ref().map_or_else(|| plain(&OnExceed::default()), plain)
}

fn is_daily(budget: &BudgetView) -> bool {
    budget.limits.tokens_per_day.is_some() || budget.limits.cost_per_day.is_some()
}

/// Returns the spent tokens of the most relevant row: today's if there is one, else the one for all time.
fn tokens(budget: &BudgetView) -> String {
    match budget.rows.first() {
        Some(row) => spent(&plain(&row.tokens.used), &plain(&row.tokens.limit), &plain(&row.tokens.reserved)),
        None => unspent(budget, &plain(&budget.limits.tokens_per_day), &plain(&budget.limits.tokens)),
    }
}

/// Returns the money of the same row.
fn cost(budget: &BudgetView) -> String {
    match budget.rows.first() {
        Some(row) => spent(&row.cost.used, &plain(&row.cost.limit), &row.cost.reserved),
        None => unspent(budget, &plain(&budget.limits.cost_per_day), &plain(&budget.limits.cost)),
    }
}

/// Returns the limit of one unit of an unspent budget.
fn unspent(budget: &BudgetView, per_day: &str, altogether: &str) -> String {
    let limit = if is_daily(budget) { per_day } else { altogether };
    if limit.is_empty() { String::new() } else { format!("0 of {limit}") }
}

fn spent(used: &str, limit: &str, reserved: &str) -> String {
    let spent = if limit.is_empty() { used.to_owned() } else { format!("{used} of {limit}") };
    if reserved.chars().any(|digit| digit.is_ascii_digit() && digit != '0') {
        format!("{spent} + {reserved} reserved")
    } else {
        spent
    }
}

fn period(budget: &BudgetView) -> String {
    let of_a_day = budget.rows.first().map_or_else(|| is_daily(budget), |row| row.day.is_some());
    if of_a_day { "day".to_owned() } else { "altogether".to_owned() }
}

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let budgets: Vec<_> = session.client()?.member(&["budgets"], &[], "budgets").await?;
    session.output.list(&budgets, |budget| &budget.name, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::filled;
    use serde_json::{Value, json};

    fn budget(limits: &Value, rows: &Value) -> BudgetView {
        let base =
            json!({"name": "fleet", "scope": "fleet", "currency": "USD", "on_exceed": null, "warn_at": 80});
        filled(base, &json!({"limits": limits, "rows": rows}))
    }

    #[test]
    fn a_budget_that_nothing_was_spent_of_shows_its_limit() {
        let daily = json!({"tokens_per_day": 100, "tokens": null, "cost": null, "cost_per_day": null});
        let fresh = budget(&daily, &json!([]));
        assert_eq!(
            (tokens(&fresh), cost(&fresh), period(&fresh)),
            ("0 of 100".into(), String::new(), "day".into())
        );
        let whole = json!({"tokens": null, "cost": "5.00", "tokens_per_day": null, "cost_per_day": null});
        let fresh = budget(&whole, &json!([]));
        assert_eq!((cost(&fresh), period(&fresh)), ("0 of 5.00".into(), "altogether".into()));
        let money = json!({"used": "0", "limit": null, "reserved": "0", "left": null});
        let purse = json!({"used": 40, "limit": 100, "reserved": 25, "left": 35});
        let row = json!({"day": null, "tokens": purse, "cost": money, "on_exceed": null, "waiting": 0});
        assert_eq!(tokens(&budget(&whole, &json!([row]))), "40 of 100 + 25 reserved");
    }
}
