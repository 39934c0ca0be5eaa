//! `turnstone budget show`: a budget, day by day.

use super::ShowArgs;
use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use crate::output::{Format, table, text};
use serde_json::Value;
use std::process::ExitCode;

pub(super) const COLUMNS: &[Column] = &[
    column("DAY", |row| if row["day"].is_null() { "altogether".to_owned() } else { plain(&row["day"]) }),
    column("TOKENS", |row| plain(&row["tokens"]["used"])),
    column("RESERVED", |row| plain(&row["tokens"]["reserved"])),
    column("LIMIT", |row| plain(&row["tokens"]["limit"])),
    column("COST", |row| plain(&row["cost"]["used"])),
    column("RESERVED", |row| plain(&row["cost"]["reserved"])),
    column("LIMIT", |row| plain(&row["cost"]["limit"])),
    column("WAITING", |row| plain(&row["waiting"])),
];

/// Prints the budget.
///
/// # Errors
/// There is no such budget, or the request fails.
pub async fn run(args: &ShowArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let query = [("days", args.days.to_string())];
    let budget = session.client()?.get(&["budgets", &args.name], &query).await?;
    print(&budget, session)
}

/// Prints a budget with its rows.
pub(super) fn print(budget: &Value, session: &Session) -> anyhow::Result<ExitCode> {
    let output = &session.output;
    match output.format {
        Format::Json => output.json(budget)?,
        Format::Ids => output.line(&text::line(&plain(&budget["name"])))?,
        Format::Table => {
            for field in ["name", "currency", "on_exceed", "warn_at"] {
                let value = match &budget[field] {
                    // The server's default.
                    Value::Null if field == "on_exceed" => "retry".to_owned(),
                    value => plain(value),
                };
                if !value.is_empty() {
                    output.line(&format!("{field:<16} {}", text::line(&value)))?;
                }
            }
            for (field, value) in budget["limits"].as_object().into_iter().flatten() {
                if !value.is_null() {
                    output.line(&format!("{field:<16} {}", text::line(&plain(value))))?;
                }
            }
            let rows = budget["rows"].as_array().cloned().unwrap_or_default();
            if !rows.is_empty() {
                output.line(&format!("\n{}", table::of(&rows, COLUMNS, output.tty)))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
