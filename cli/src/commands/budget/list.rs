//! `turnstone budget list`: budgets with what is left of them.

use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use serde_json::Value;
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    column("BUDGET", |budget| plain(&budget["name"])),
    column("TOKENS", |budget| used(budget, "tokens")),
    column("COST", |budget| used(budget, "cost")),
    column("PER", period),
    column("WHEN EXCEEDED", |budget| plain(&budget["on_exceed"])),
    column("WAITING", waiting),
];

/// The newest row that says most: of today if there is one, else altogether.
fn newest(budget: &Value) -> &Value {
    &budget["rows"][0]
}

fn used(budget: &Value, side: &str) -> String {
    let purse = &newest(budget)[side];
    match (plain(&purse["used"]), plain(&purse["limit"])) {
        (used, limit) if used.is_empty() && limit.is_empty() => String::new(),
        (used, limit) if limit.is_empty() => used,
        (used, limit) => format!("{used} of {limit}"),
    }
}

fn period(budget: &Value) -> String {
    let day = plain(&newest(budget)["day"]);
    if newest(budget).is_null() || !day.is_empty() { day } else { "altogether".to_owned() }
}

fn waiting(budget: &Value) -> String {
    let rows = budget["rows"].as_array();
    let jobs: u64 = rows.into_iter().flatten().filter_map(|row| row["waiting"].as_u64()).sum();
    jobs.to_string()
}

/// Prints the list.
///
/// # Errors
/// The server cannot be asked.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let mut answer = session.client()?.get(&["budgets"], &[]).await?;
    let budgets = match answer["budgets"].take() {
        Value::Array(budgets) => budgets,
        _ => Vec::new(),
    };
    session.output.list(&budgets, "name", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
