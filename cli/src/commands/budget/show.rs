//! `turnstone budget show`: a budget, day by day.

use super::ShowArgs;
use super::change::raise_command;
use super::list::on_exceed;
use crate::client::Received;
use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use crate::output::{Format, table, text};
use std::process::ExitCode;
use turnstone_api::answers::{AwaitedBudget, BudgetView, Row};

const COLUMNS: &[Column<Row>] = &[
    column("DAY", |row| row.day.clone().unwrap_or_else(|| "altogether".to_owned())),
    column("TOKENS", |row| plain(&row.tokens.used)),
    column("RESERVED", |row| plain(&row.tokens.reserved)),
    column("LIMIT", |row| plain(&row.tokens.limit)),
    column("COST", |row| plain(&row.cost.used)),
    column("RESERVED", |row| plain(&row.cost.reserved)),
    column("LIMIT", |row| plain(&row.cost.limit)),
    column("WAITING", |row| plain(&row.waiting)),
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
pub(super) fn print(budget: &Received<BudgetView>, session: &Session) -> anyhow::Result<ExitCode> {
    let output = &session.output;
    match output.format {
        Format::Json => output.json(budget)?,
        Format::Ids => output.line(&text::line(&budget.name))?,
        Format::Table => {
            let limits = &budget.limits;
            let fields = [
                ("name", budget.name.clone()),
                ("currency", budget.currency.clone()),
                ("on_exceed", on_exceed(budget)),
                ("warn_at", budget.warn_at.to_string()),
                ("tokens", plain(&limits.tokens)),
                ("tokens_per_day", plain(&limits.tokens_per_day)),
                ("cost", plain(&limits.cost)),
                ("cost_per_day", plain(&limits.cost_per_day)),
            ];
            for (field, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
                output.line(&format!("{field:<16} {}", text::line(value)))?;
            }
            if !budget.rows.is_empty() {
                output.line(&format!("\n{}", table::of(&budget.rows, COLUMNS, output.tty)))?;
            }
            if let Some(awaited) = &budget.awaited {
                output.line(&describe_waiting(awaited))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what the oldest waiting job needs.
fn describe_waiting(budget: &AwaitedBudget) -> String {
    match (raise_command(budget), &budget.needed) {
        (None, _) => "\nthe oldest waiting job goes on".to_owned(),
        (Some(command), Some(needed)) => {
            format!("\na waiting job may need {} for its next call: {command}", plain(needed))
        }
        (Some(command), None) => format!("\njobs wait for a raise: {command}"),
    }
}
