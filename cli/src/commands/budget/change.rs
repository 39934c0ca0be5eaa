//! `turnstone budget raise` and `delete`.

use crate::client::ids::Named;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::table::plain;
use crate::output::text;
use clap::Args;
use serde::Deserialize as _;
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

/// Returns what a raise means for the job that waited for it, or else what is left.
fn effect(budget: &Value) -> String {
    let awaited = AwaitedBudget::deserialize(&budget["awaited"]).ok();
    match awaited.as_ref().map(|awaited| (awaited, awaited.is_short())) {
        Some((AwaitedBudget { unit, left, needed, short, .. }, Some(true))) => {
            let unit = if *unit == Measure::Tokens { " tokens" } else { "" };
            let of = |amount: &Option<Value>| plain(amount);
            let (left, needed, short) = (of(left), of(needed), of(short));
            format!(
                ", but {left}{unit} are left and the next call may need {needed}: raise it by {short} more"
            )
        }
        Some(_) => "; its job goes on".to_owned(),
        None => {
            let rest = [("tokens", " tokens"), ("cost", " of money")];
            let rest = rest.into_iter().filter_map(|(purse, unit)| match &budget[purse]["left"] {
                Value::Null => None,
                left => Some(format!("{}{unit}", plain(left))),
            });
            let rest: Vec<String> = rest.collect();
            if rest.is_empty() { String::new() } else { format!(": {} are left", rest.join(" and ")) }
        }
    }
}

/// Returns the command that raises a budget by what is missing; `None` when nothing is.
#[must_use]
pub fn raise_command(budget: &AwaitedBudget) -> Option<String> {
    if budget.is_short() == Some(false) {
        return None;
    }
    let what = match budget.unit {
        Measure::Tokens => "tokens",
        Measure::Money => "cost",
    };
    let per_day = if budget.resets_at.is_some() { "-per-day" } else { "" };
    let by = budget.short.as_ref().map_or("N".to_owned(), plain);
    let whose = match &budget.engagement_id {
        Some(engagement) => format!("--engagement {engagement}"),
        None => text::quoted(&budget.name),
    };
    Some(text::line(&format!("turnstone budget raise {whose} --{what}{per_day} {by}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raise_that_is_too_little_says_what_is_missing() {
        let purse = |left: Value| json!({"used": 0, "reserved": 0, "limit": null, "left": left});
        let budget = |awaited: Value| json!({"tokens": purse(json!(90)), "cost": purse(json!(null)), "awaited": awaited});
        let awaited = |unit: &str, left: Value, short: Value| {
            json!({"name": "engagement", "unit": unit, "needed": 520, "left": left, "short": short, "resets_at": null,
                   "engagement_id": "e"})
        };
        let short = awaited("tokens", json!(90), json!(430));
        let said = ", but 90 tokens are left and the next call may need 520: raise it by 430 more";
        assert_eq!(effect(&budget(short.clone())), said);
        let command = raise_command(&serde_json::from_value(short).unwrap());
        assert_eq!(command.as_deref(), Some("turnstone budget raise --engagement e --tokens 430"));
        for enough in
            [awaited("tokens", json!(520), json!(0)), awaited("money", json!("9.00"), json!("0.00"))]
        {
            assert_eq!(effect(&budget(enough.clone())), "; its job goes on");
            assert_eq!(raise_command(&serde_json::from_value(enough).unwrap()), None);
        }
        assert_eq!(effect(&budget(Value::Null)), ": 90 tokens are left");
        let free = json!({"tokens": purse(json!(null)), "cost": purse(json!("2.50"))});
        assert_eq!(effect(&free), ": 2.50 of money are left");
        assert_eq!(effect(&json!({"tokens": purse(json!(null)), "cost": purse(json!(null))})), "");
    }
}
