//! `turnstone budget cost`: what was spent.

use crate::client::elements;
use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use crate::output::{Format, table, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;

/// `turnstone budget cost`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  turnstone budget cost --days 30\n  turnstone budget cost 0190a7b2-…")]
pub struct CostArgs {
    /// An engagement, by phase and tool; without one, all models by day and tenant
    pub engagement: Option<String>,
    /// How many days, today included
    #[arg(long, value_name = "N", default_value_t = 7, conflicts_with = "engagement")]
    pub days: u32,
}

/// What a row cost. Where models were asked and nothing is booked, they have no price: that is not the same as free.
fn cost(row: &Value) -> String {
    let is_zero =
        row["cost"].as_str().is_some_and(|cost| cost.chars().all(|digit| matches!(digit, '0' | '.')));
    let asked = ["tokens_in", "tokens_out"].iter().any(|name| row[*name].as_i64().is_some_and(|n| n > 0));
    if is_zero && asked { "-".to_owned() } else { plain(&row["cost"]) }
}

const DAILY: &[Column] = &[
    column("DAY", |row| plain(&row["day"])),
    column("TENANT", |row| plain(&row["tenant"])),
    column("MODEL", |row| plain(&row["model"])),
    column("CALLS", |row| plain(&row["runs"])),
    column("IN", |row| plain(&row["tokens_in"])),
    column("CACHED", |row| plain(&row["tokens_cached"])),
    column("OUT", |row| plain(&row["tokens_out"])),
    column("COST", cost),
];

const PARTS: &[Column] = &[
    column("JOB", |row| plain(&row["job_id"])),
    column("PHASE OR TOOL", |row| plain(&row["name"])),
    column("RUNS", |row| plain(&row["runs"])),
    column("MS", |row| plain(&row["duration_ms"])),
    column("IN", |row| plain(&row["tokens_in"])),
    column("CACHED", |row| plain(&row["tokens_cached"])),
    column("OUT", |row| plain(&row["tokens_out"])),
    column("COST", cost),
];

/// Prints what was spent.
///
/// # Errors
/// There is no such engagement, or the server cannot be asked.
pub async fn run(args: &CostArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, &session.output);
    let Some(id) = &args.engagement else {
        let answer = client.get(&["costs"], &[("days", args.days.to_string())]).await?;
        output.list(&elements(answer, "costs"), "day", DAILY)?;
        return Ok(ExitCode::SUCCESS);
    };
    let answer = client.get(&["engagements", id, "cost"], &[]).await?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            let rows: Vec<Value> =
                [elements(answer.clone(), "phases"), elements(answer.clone(), "tools")].concat();
            output.line(&table::of(&rows, PARTS, output.tty))?;
            let (tokens, cost) = (&answer["tokens"]["used"], &answer["cost"]["used"]);
            output.line(&format!(
                "\naltogether, delegates included: {} tokens, {}",
                plain(tokens),
                plain(cost)
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::cost;
    use serde_json::json;

    #[test]
    fn what_has_no_price_is_not_free() {
        assert_eq!(cost(&json!({"cost": "0.00", "tokens_in": 12, "tokens_out": 3})), "-");
        assert_eq!(cost(&json!({"cost": "0.00", "tokens_in": 0, "tokens_out": 0})), "0.00");
        assert_eq!(cost(&json!({"cost": "0.31", "tokens_in": 12, "tokens_out": 3})), "0.31");
    }
}
