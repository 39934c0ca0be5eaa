//! `turnstone budget set`: the limits of a budget.

use crate::client::Client;
use crate::commands::Session;
use crate::failure::{Exit, Failure};
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use turnstone_api::answers::BudgetView;
use turnstone_domain::budget::{Amount, OnExceed};

/// `turnstone budget set`. Settings that are not given stay unchanged.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: turnstone budget set tenant/acme --tokens-per-day 1000000 --cost-per-day 25 --on-exceed park"
)]
pub struct SetArgs {
    /// fleet, tenant/NAME, agent/NAME, model/PROVIDER/MODEL, or parts together in this order
    pub name: String,
    /// Tokens altogether
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = tokens)]
    pub tokens: Option<u64>,
    /// Tokens per day of UTC
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = tokens)]
    pub tokens_per_day: Option<u64>,
    /// Money altogether, such as 100 or 12.50
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub cost: Option<Amount>,
    /// Money per day of UTC
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub cost_per_day: Option<Amount>,
    /// The currency; by default that of the price table
    #[arg(long, value_name = "CODE")]
    pub currency: Option<String>,
    /// Treatment of a job that needs more: retry (the default), park or fail
    #[arg(long, value_name = "WORD", value_parser = on_exceed)]
    pub on_exceed: Option<OnExceed>,
    /// The percentage of a limit at which a warning is given; 80 by default
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub warn_at: Option<u8>,
    /// Drop the limits that are not given here
    #[arg(long)]
    pub only: bool,
}

/// Reads a number of tokens.
pub(super) fn tokens(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number that is not negative, such as 50000".to_owned())
}

/// Reads retry, park or fail.
pub(super) fn on_exceed(text: &str) -> Result<OnExceed, String> {
    OnExceed::parse(text).ok_or_else(|| "write retry, park or fail".to_owned())
}

/// Adds the budget's current settings, where none are given.
async fn keep(body: &mut Map<String, Value>, client: &Client, name: &str) -> Result<(), Failure> {
    let known: BudgetView = match client.get(&["budgets", name], &[]).await {
        Ok(known) => known,
        Err(failure) if failure.exit == Exit::NotFound => return Ok(()),
        Err(failure) => return Err(failure),
    };
    // An amount keeps the currency that it was set in.
    let has_cost = known.limits.cost.is_some() || known.limits.cost_per_day.is_some();
    let kept = json!({
        "tokens": known.limits.tokens, "tokens_per_day": known.limits.tokens_per_day, "cost": known.limits.cost,
        "cost_per_day": known.limits.cost_per_day, "on_exceed": known.on_exceed, "warn_at": known.warn_at,
        "currency": has_cost.then_some(known.currency),
    });
    for (field, value) in kept.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        body.entry(field).or_insert_with(|| value.clone());
    }
    Ok(())
}

/// Sets the budget.
///
/// # Errors
/// Nothing is given, or the server refused.
pub async fn run(args: &SetArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let mut body: Map<String, Value> = Map::new();
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(field.to_owned(), value);
        }
    };
    put("tokens", args.tokens.map(Value::from));
    put("tokens_per_day", args.tokens_per_day.map(Value::from));
    put("cost", args.cost.map(|amount| amount.to_string().into()));
    put("cost_per_day", args.cost_per_day.map(|amount| amount.to_string().into()));
    if body.is_empty() {
        let failure = Failure::usage("a budget without a limit limits nothing");
        return Err(failure.hint("give --tokens, --tokens-per-day, --cost or --cost-per-day").into());
    }
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(field.to_owned(), value);
        }
    };
    put("currency", args.currency.clone().map(Value::from));
    put("on_exceed", args.on_exceed.map(|word| word.as_str().into()));
    put("warn_at", args.warn_at.map(Value::from));
    let client = session.client()?;
    if !args.only {
        keep(&mut body, &client, &args.name).await?;
    }
    let budget = client.put(&["budgets", &args.name], &body).await?;
    super::show::print(&budget, session)
}
