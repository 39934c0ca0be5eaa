//! `turnstone budget raise` and `delete`.

use crate::client::ids::Named;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::table::plain;
use crate::output::text;
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use turnstone_api::answers::AwaitedBudget;
use turnstone_domain::budget::{Amount, Measure};

/// `turnstone budget raise`. The given amounts are added to the existing limits.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  turnstone budget raise tenant/acme --tokens-per-day 500000\n  \
                        turnstone budget raise --engagement 0190a7b2-… --tokens 50000")]
pub struct RaiseArgs {
    /// The budget
    #[arg(required_unless_present = "engagement", conflicts_with = "engagement")]
    pub name: Option<String>,
    /// The budget of this engagement (its id, or its first characters) and its delegates instead
    #[arg(long, value_name = "ID")]
    pub engagement: Option<String>,
    /// So many tokens more
    #[arg(long, value_name = "N")]
    pub tokens: Option<u32>,
    /// So many tokens more per day
    #[arg(long, value_name = "N", conflicts_with = "engagement")]
    pub tokens_per_day: Option<u32>,
    /// So much money more
    #[arg(long, value_name = "AMOUNT")]
    pub cost: Option<Amount>,
    /// So much money more per day
    #[arg(long, value_name = "AMOUNT", conflicts_with = "engagement")]
    pub cost_per_day: Option<Amount>,
}

/// Raises a budget.
///
/// # Errors
/// Nothing is given, there is no such budget, or the request fails.
pub async fn raise(args: &RaiseArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let mut by: Map<String, Value> = Map::new();
    by.extend(args.tokens.map(|tokens| ("tokens".to_owned(), tokens.into())));
    by.extend(args.tokens_per_day.map(|tokens| ("tokens_per_day".to_owned(), tokens.into())));
    by.extend(args.cost.map(|amount| ("cost".to_owned(), amount.to_string().into())));
    by.extend(args.cost_per_day.map(|amount| ("cost_per_day".to_owned(), amount.to_string().into())));
    if by.is_empty() {
        let failure = Failure::usage("there is nothing to raise it by");
        return Err(failure.hint("give --tokens, --tokens-per-day, --cost or --cost-per-day").into());
    }
    let client = session.client()?;
    if let Some(given) = &args.engagement {
        let id = &client.whole_id(Named::Engagement, given).await?;
        let budget: Value = client.patch(&["engagements", id, "budget"], &json!({ "raise": by })).await?;
        let words = format!("the budget of engagement {} is raised{}", text::line(id), effect(&budget));
        session.output.answer(&budget, id, &words)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = args.name.as_deref().unwrap_or_default();
    let budget = client.post(&["budgets", name, "raise"], &by).await?;
    super::show::print(&budget, session)
}

/// Returns what a raise means for the job that waited for it.
fn effect(budget: &Value) -> String {
    let of = |member: &Value| plain(member);
    let (awaited, tokens) = (&budget["awaited"], &budget["tokens"]);
    let unit = if awaited["unit"] == "money" { "" } else { " tokens" };
    match &awaited["short"] {
        Value::Null if awaited.is_null() => format!(": {} tokens are left", of(&tokens["left"])),
        Value::Null => "; its job goes on".to_owned(),
        short if *short == 0 || *short == "0" => "; its job goes on".to_owned(),
        short => format!(
            ", but {}{unit} are left and the next call may need {}: raise it by {} more",
            of(&awaited["left"]),
            of(&awaited["needed"]),
            of(short)
        ),
    }
}

/// Returns the command that raises a budget by what is missing.
#[must_use]
pub fn raise_command(budget: &AwaitedBudget, engagement: &str) -> String {
    let what = match budget.unit {
        Measure::Tokens => "tokens",
        Measure::Money => "cost",
    };
    let per_day = if budget.resets_at.is_some() { "-per-day" } else { "" };
    let by = budget.short.as_ref().map_or("N".to_owned(), plain);
    let whose = match budget.name.as_str() {
        "engagement" => format!("--engagement {engagement}"),
        name => text::quoted(name),
    };
    text::line(&format!("turnstone budget raise {whose} --{what}{per_day} {by}"))
}

/// Deletes budgets.
///
/// # Errors
/// There is no such budget, or the request fails.
pub async fn delete(names: &[String], session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, &session.output);
    for name in names {
        let answer: Value = client.delete(&["budgets", name]).await?;
        output.answer(&answer, name, &format!("{} is forgotten", text::line(name)))?;
    }
    Ok(ExitCode::SUCCESS)
}
