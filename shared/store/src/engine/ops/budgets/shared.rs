//! Shared budgets: what they limit, and the rows of the ledger that have to know it.

use super::super::push;
use super::{raised, resume};
use crate::engine::budgets::rule as decode_rule;
use crate::engine::journal::Journal;
use crate::engine::session::{Arg, Args, Session};
use crate::engine::statement::{Writes, read};
use crate::engine::unit::Unit;
use crate::{NewAgent, Raise, Ring, StoreError, sql};
use turnstone_domain::Timestamp;
use turnstone_domain::budget::{ALL_DAYS, BudgetName, BudgetRule, OnExceed, day_of};
use turnstone_domain::event::{ChangedBudget, EventBody, Limits};

async fn known(
    session: &mut Session,
    name: &str,
    tenant: Option<&str>,
) -> Result<Option<(BudgetRule, Option<String>)>, StoreError> {
    let (action, values) = ("read a budget", [name.into(), tenant.into()]);
    Ok(read(session, action, &sql::LOCK_BUDGET_RULE, &values, decode_rule).await?.pop())
}

/// Makes a shared budget, or changes what it limits.
pub(in crate::engine) async fn set(
    session: &mut Session,
    unit: &mut Unit,
    rule: &BudgetRule,
    given: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let name = rule.name.to_string();
    let before = known(session, &name, None).await?;
    let said = before.as_ref().and_then(|(_, said)| said.as_deref());
    if given.is_some() && said == given {
        return Ok(false);
    }
    put(session, rule, given, now).await?;
    let before = before.map(|(rule, _)| rule);
    tell(session, unit, &name, before.as_ref(), Some(rule), now).await?;
    resume::open(session, unit, resume::Of::Shared(&name), now).await?;
    Ok(true)
}

/// Raises the limits that there are.
pub(in crate::engine) async fn raise(
    session: &mut Session,
    unit: &mut Unit,
    name: &str,
    tenant: Option<&str>,
    by: Raise,
    now: Timestamp,
) -> Result<Option<BudgetRule>, StoreError> {
    let Some((before, _)) = known(session, name, tenant).await? else { return Ok(None) };
    let rule = BudgetRule {
        tokens: raised(before.tokens, by.tokens),
        tokens_per_day: raised(before.tokens_per_day, by.tokens_per_day),
        cost: raised(before.cost, by.cost),
        cost_per_day: raised(before.cost_per_day, by.cost_per_day),
        ..before.clone()
    };
    put(session, &rule, None, now).await?;
    tell(session, unit, name, Some(&before), Some(&rule), now).await?;
    resume::open(session, unit, resume::Of::Shared(name), now).await?;
    Ok(Some(rule))
}

/// Forgets a shared budget.
pub(in crate::engine) async fn forget(
    session: &mut Session,
    unit: &mut Unit,
    name: &str,
    tenant: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some((before, _)) = known(session, name, tenant).await? else { return Ok(false) };
    session.execute("forget a budget", &sql::DELETE_BUDGET_RULE, Args::Values(&[name.into()])).await?;
    // A job that parks for it meanwhile locks these rows, so it sees that they limit nothing, or is found as waiting below.
    limit(session, &before, (None, None), (ALL_DAYS, i64::MAX)).await?;
    tell(session, unit, name, Some(&before), None, now).await?;
    resume::open(session, unit, resume::Of::Shared(name), now).await?;
    Ok(true)
}

/// Sets a shared budget from the daily limit of an agent's manifest, unless an operator has set it.
pub(in super::super) async fn of_manifest(
    session: &mut Session,
    unit: &mut Unit,
    agent: &NewAgent,
) -> Result<(), StoreError> {
    let spending = &agent.definition.spending;
    let name = BudgetName::of_agent(&agent.definition.name);
    let rule = BudgetRule {
        tokens_per_day: spending.tokens_per_day,
        cost_per_day: spending.cost_per_day,
        currency: spending.currency.clone().unwrap_or_else(|| "USD".to_owned()),
        warn_at: spending.warn_at,
        ..BudgetRule::of(name)
    };
    if rule.limits_anything() {
        let given = format!("manifest: {rule:?}");
        set(session, unit, &rule, Some(&given), agent.at).await?;
    } else {
        without_manifest(session, unit, &agent.definition.name, agent.at).await?;
    }
    Ok(())
}

/// The budget that an agent's manifest gave it goes; one that an operator set stays.
pub(in super::super) async fn without_manifest(
    session: &mut Session,
    unit: &mut Unit,
    agent: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let name = BudgetName::of_agent(agent).to_string();
    if let Some((_, Some(said))) = known(session, &name, None).await?
        && said.starts_with("manifest: ")
    {
        forget(session, unit, &name, None, at).await?;
    }
    Ok(())
}

async fn put(
    session: &mut Session,
    rule: &BudgetRule,
    given: Option<&str>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let name = rule.name.to_string();
    let on_exceed = rule.on_exceed.map(OnExceed::as_str);
    let values = [
        name.as_str().into(),
        rule.name.tenant.as_deref().into(),
        rule.name.agent.as_deref().into(),
        rule.name.model.as_deref().into(),
        Arg::Int(rule.tokens),
        Arg::Int(rule.tokens_per_day),
        Arg::Int(rule.cost),
        Arg::Int(rule.cost_per_day),
        rule.currency.as_str().into(),
        on_exceed.into(),
        Arg::Int(rule.warn_at),
        given.into(),
        now.0.into(),
    ];
    session.execute("set a budget", &sql::INSERT_BUDGET_RULE, Args::Values(&values)).await?;
    limit(session, rule, (rule.tokens, rule.cost), (ALL_DAYS, ALL_DAYS)).await?;
    limit(session, rule, (rule.tokens_per_day, rule.cost_per_day), (day_of(now), i64::MAX)).await
}

/// Sets the limits of a budget's rows for these days: tokens and money.
async fn limit(
    session: &mut Session,
    rule: &BudgetRule,
    (tokens, money): (Option<i64>, Option<i64>),
    (first, last): (i64, i64),
) -> Result<(), StoreError> {
    let name = rule.name.to_string();
    let values = [
        name.as_str().into(),
        Arg::Int(tokens),
        Arg::Int(money),
        rule.on_exceed.map(OnExceed::as_str).into(),
        Arg::Int(rule.warn_at),
        rule.currency.as_str().into(),
        first.into(),
        last.into(),
    ];
    session.execute("set a budget", &sql::UPDATE_SHARED_BUDGET_LIMITS, Args::Values(&values)).await?;
    Ok(())
}

fn limits(rule: &BudgetRule) -> Limits {
    Limits {
        tokens: rule.tokens,
        tokens_per_day: Some(rule.tokens_per_day),
        cost: rule.cost.map(turnstone_domain::budget::Amount),
        cost_per_day: Some(rule.cost_per_day.map(turnstone_domain::budget::Amount)),
        on_exceed: Some(rule.on_exceed),
    }
}

/// An event about a budget is a stream of its own: it takes a number as a job does.
async fn tell(
    session: &mut Session,
    unit: &mut Unit,
    name: &str,
    before: Option<&BudgetRule>,
    after: Option<&BudgetRule>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let number = push::number(session).await?;
    let changed =
        ChangedBudget { subject: name.to_owned(), before: before.map(limits), after: after.map(limits) };
    let (mut journal, mut writes) = (Journal::default(), Writes::default());
    journal.lone(number, &EventBody::BudgetChanged(changed), now);
    journal.flush(session, &mut writes)?;
    writes.run(session).await?;
    unit.rings.push(Ring::Events(name.to_owned()));
    Ok(())
}
