//! `turnstone budget cost`: spending.

use crate::client::elements;
use crate::client::ids::Named;
use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use crate::output::{Format, table, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;

/// `turnstone budget cost`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  turnstone budget cost --days 30\n  turnstone budget cost --tag run=7\n  turnstone budget cost 0190a7b2-…"
)]
pub struct CostArgs {
    /// An engagement (its id, or its first characters), by phase and tool; without one, all models by day and tenant
    pub engagement: Option<String>,
    /// How many days, today included
    #[arg(long, value_name = "N", default_value_t = 7, conflicts_with = "engagement")]
    pub days: u32,
    /// Only jobs with this tag, and their delegates
    #[arg(long, value_name = "TAG", conflicts_with = "engagement")]
    pub tag: Option<String>,
}

/// Returns the cost of a row; `unknown` where a model was called and nothing is booked: the model has no price.
#[must_use]
pub fn cost(row: &Value) -> String {
    let requested = ["tokens_in", "tokens_out"].iter().any(|name| row[*name].as_i64().is_some_and(|n| n > 0));
    priced(&row["cost"], requested)
}

/// Returns an amount; `unknown` for zero where a model was called.
fn priced(cost: &Value, requested: bool) -> String {
    let is_zero = cost.as_str().is_some_and(|cost| cost.chars().all(|digit| matches!(digit, '0' | '.')));
    if is_zero && requested { "unknown".to_owned() } else { plain(cost) }
}

/// The advice for an unknown cost.
const UNPRICED: &str =
    "the cost of a model without a price is unknown: give it one in [prices.\"PROVIDER/MODEL\"]";

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

/// Prints the spending.
///
/// # Errors
/// There is no such engagement, or the request fails.
pub async fn run(args: &CostArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, &session.output);
    let Some(given) = &args.engagement else {
        let mut query = vec![("days", args.days.to_string())];
        query.extend(args.tag.clone().map(|tag| ("tag", tag)));
        let answer = client.get(&["costs"], &query).await?;
        let costs = elements(answer, "costs");
        output.list(&costs, "day", DAILY)?;
        if output.format == Format::Table && costs.iter().any(|row| cost(row) == "unknown") {
            output.remark(UNPRICED);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let id = &client.whole_id(Named::Engagement, given).await?;
    let answer = client.get(&["engagements", id, "cost"], &[]).await?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            let rows: Vec<Value> =
                [elements(answer.clone(), "phases"), elements(answer.clone(), "tools")].concat();
            output.line(&table::of(&rows, PARTS, output.tty))?;
            let (tokens, cost) = (&answer["tokens"]["used"], &answer["cost"]["used"]);
            let cost = priced(cost, tokens.as_i64().is_some_and(|tokens| tokens > 0));
            output
                .line(&format!("\naltogether, delegates included: {} tokens, cost {cost}", plain(tokens)))?;
            if cost == "unknown" || rows.iter().any(|row| self::cost(row) == "unknown") {
                output.remark(UNPRICED);
            }
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
        assert_eq!(cost(&json!({"cost": "0.00", "tokens_in": 12, "tokens_out": 3})), "unknown");
        assert_eq!(cost(&json!({"cost": "0.00", "tokens_in": 0, "tokens_out": 0})), "0.00");
        assert_eq!(cost(&json!({"cost": "0.31", "tokens_in": 12, "tokens_out": 3})), "0.31");
    }
}
