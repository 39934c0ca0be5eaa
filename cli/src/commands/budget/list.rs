//! `turnstone budget list`: budgets with their rest.

use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use serde_json::Value;
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    column("BUDGET", |budget| plain(&budget["name"])),
    column("TOKENS", |budget| used(budget, "tokens")),
    column("COST", |budget| used(budget, "cost")),
    column("PER", period),
    column("WHEN EXCEEDED", |budget| {
        if budget["on_exceed"].is_null() { "retry".to_owned() } else { plain(&budget["on_exceed"]) }
    }),
    column("WAITING", waiting),
];

/// Returns the most relevant row: today's if there is one, else the one for all time.
fn newest(budget: &Value) -> &Value {
    &budget["rows"][0]
}

/// Returns true if an unspent budget is one per day.
fn is_daily(budget: &Value) -> bool {
    ["tokens_per_day", "cost_per_day"].iter().any(|limit| !budget["limits"][limit].is_null())
}

/// Returns the limit of one unit of an unspent budget.
fn unspent(budget: &Value, side: &str) -> String {
    let limits = &budget["limits"];
    let limit = if is_daily(budget) { &limits[format!("{side}_per_day")] } else { &limits[side] };
    if limit.is_null() { String::new() } else { format!("0 of {}", plain(limit)) }
}

fn used(budget: &Value, side: &str) -> String {
    if newest(budget).is_null() {
        return unspent(budget, side);
    }
    let purse = &newest(budget)[side];
    let spent = match (plain(&purse["used"]), plain(&purse["limit"])) {
        (used, limit) if used.is_empty() && limit.is_empty() => return String::new(),
        (used, limit) if limit.is_empty() => used,
        (used, limit) => format!("{used} of {limit}"),
    };
    let reserved = plain(&purse["reserved"]);
    if reserved.chars().any(|digit| digit.is_ascii_digit() && digit != '0') {
        format!("{spent} + {reserved} reserved")
    } else {
        spent
    }
}

fn period(budget: &Value) -> String {
    let of_a_day = match newest(budget) {
        Value::Null => is_daily(budget),
        row => !row["day"].is_null(),
    };
    if of_a_day { "day".to_owned() } else { "altogether".to_owned() }
}

fn waiting(budget: &Value) -> String {
    let rows = budget["rows"].as_array();
    let jobs: u64 = rows.into_iter().flatten().filter_map(|row| row["waiting"].as_u64()).sum();
    jobs.to_string()
}

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let mut answer = session.client()?.get(&["budgets"], &[]).await?;
    let budgets = match answer["budgets"].take() {
        Value::Array(budgets) => budgets,
        _ => Vec::new(),
    };
    session.output.list(&budgets, "name", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_budget_that_nothing_was_spent_of_shows_its_limit() {
        let fresh = json!({"rows": [], "limits": {"tokens_per_day": 100, "tokens": null, "cost": null, "cost_per_day": null}});
        assert_eq!(
            (used(&fresh, "tokens"), used(&fresh, "cost"), period(&fresh)),
            ("0 of 100".into(), String::new(), "day".into())
        );
        let whole = json!({"rows": [], "limits": {"tokens": null, "cost": "5.00", "tokens_per_day": null, "cost_per_day": null}});
        assert_eq!((used(&whole, "cost"), period(&whole)), ("0 of 5.00".into(), "altogether".into()));
        let under_way =
            json!({"rows": [{"day": null, "tokens": {"used": 40, "limit": 100, "reserved": 25}}]});
        assert_eq!(used(&under_way, "tokens"), "40 of 100 + 25 reserved");
    }
}
