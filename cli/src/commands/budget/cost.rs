//! `turnstone budget cost`: spending.

use crate::client::Received;
use crate::client::ids::Named;
use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use crate::output::{Format, table, text};
use clap::Args;
use std::process::ExitCode;
use turnstone_api::answers::{Cost, CostPart, Daily};

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

/// Returns an amount; `unknown` for zero where a model was called: the model has no price.
#[must_use]
pub fn priced(cost: &str, requested: bool) -> String {
    let is_zero = cost.chars().all(|digit| matches!(digit, '0' | '.'));
    if is_zero && requested { "unknown".to_owned() } else { cost.to_owned() }
}

fn of_day(row: &Daily) -> String {
    priced(&row.cost, row.tokens_in + row.tokens_out > 0)
}

fn of_part(row: &CostPart) -> String {
    priced(&row.cost, row.tokens_in + row.tokens_out > 0)
}

/// The advice for an unknown cost.
const UNPRICED: &str =
    "the cost of a model without a price is unknown: give it one in [prices.\"PROVIDER/MODEL\"]";

const DAILY: &[Column<Daily>] = &[
    column("DAY", |row| plain(&row.day)),
    column("TENANT", |row| plain(&row.tenant)),
    column("MODEL", |row| plain(&row.model)),
    column("CALLS", |row| plain(&row.runs)),
    column("IN", |row| plain(&row.tokens_in)),
    column("CACHED", |row| plain(&row.tokens_cached)),
    column("OUT", |row| plain(&row.tokens_out)),
    column("COST", of_day),
];

const PARTS: &[Column<CostPart>] = &[
    column("JOB", |row| plain(&row.job_id)),
    column("PHASE OR TOOL", |row| plain(&row.name)),
    column("RUNS", |row| plain(&row.runs)),
    column("MS", |row| plain(&row.duration_ms)),
    column("IN", |row| plain(&row.tokens_in)),
    column("CACHED", |row| plain(&row.tokens_cached)),
    column("OUT", |row| plain(&row.tokens_out)),
    column("COST", of_part),
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
        let costs: Vec<_> = client.member(&["costs"], &query, "costs").await?;
        output.list(&costs, |row| &row.day, DAILY)?;
        if output.format == Format::Table && costs.iter().any(|row| of_day(row) == "unknown") {
            output.remark(UNPRICED);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let id = &client.whole_id(Named::Engagement, given).await?;
    let answer: Received<Cost> = client.get(&["engagements", id, "cost"], &[]).await?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            let answer = answer.into_value();
            let parts: Vec<CostPart> = answer.phases.into_iter().chain(answer.tools).collect();
            output.line(&table::of(&parts, PARTS, output.tty))?;
            let tokens = answer.tokens.used;
            let cost = priced(&answer.cost.used, tokens > 0);
            output.line(&format!("\naltogether, delegates included: {tokens} tokens, cost {cost}"))?;
            if cost == "unknown" || parts.iter().any(|row| of_part(row) == "unknown") {
                output.remark(UNPRICED);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::priced;

    #[test]
    fn what_has_no_price_is_not_free() {
        assert_eq!(priced("0.00", true), "unknown");
        assert_eq!(priced("0.00", false), "0.00");
        assert_eq!(priced("0.31", true), "0.31");
    }
}
