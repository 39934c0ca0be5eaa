//! `PUT /budgets/{name}`: sets the limits of a shared budget.

use super::{DAYS, named, read_view, rows};
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde::Deserialize;
use turnstone_domain::budget::{Amount, BudgetRule, OnExceed};
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// The limits of a shared budget. A limit that is not given does not apply.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"tokens_per_day": 1_000_000, "cost_per_day": "25.00", "on_exceed": "park"}))]
struct PutBudget {
    /// Tokens altogether.
    tokens: Option<i64>,
    /// Tokens per day of UTC.
    tokens_per_day: Option<i64>,
    /// Money altogether, as a decimal.
    #[schema(value_type = Option<String>)]
    cost: Option<Amount>,
    /// Money per day of UTC, as a decimal.
    #[schema(value_type = Option<String>)]
    cost_per_day: Option<Amount>,
    /// ISO 4217; by default the currency of the price table, and USD without one.
    currency: Option<String>,
    /// retry, park or fail.
    #[schema(value_type = Option<String>)]
    on_exceed: Option<OnExceed>,
    /// The percentage of a limit at which a warning is given; 80 by default.
    warn_at: Option<i64>,
}

/// Makes a shared budget, or changes its limits; jobs that wait for it continue.
#[utoipa::path(
    put, path = "/budgets/{name}", operation_id = "put_budget", tag = "budgets",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The budget.", example = "tenant/acme")),
    request_body = PutBudget,
    responses((status = 200, description = "It is set.", body = rows::BudgetView)),
)]
pub(crate) async fn put(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    operator: Operator,
    body: JsonBytes,
) -> Answer {
    let sent: PutBudget = body.read()?;
    let prices = app.api.options.currency.as_deref();
    let currency = sent.currency.as_deref().or(prices).unwrap_or("USD").to_owned();
    let in_money = sent.cost.is_some() || sent.cost_per_day.is_some();
    if let Some(prices) = prices.filter(|prices| in_money && currency != *prices) {
        let why = format!(
            "is {currency}, and the price table is in {prices}: nothing that has a price would fit into it"
        );
        return Err(OjsError::invalid_request("currency", why).into());
    }
    let rule = BudgetRule {
        tokens: sent.tokens,
        tokens_per_day: sent.tokens_per_day,
        cost: sent.cost.map(|amount| amount.0),
        cost_per_day: sent.cost_per_day.map(|amount| amount.0),
        currency,
        on_exceed: sent.on_exceed,
        warn_at: sent.warn_at,
        ..BudgetRule::of(named(&name, &tenant)?)
    };
    rule.check().map_err(|why| OjsError::invalid_request("the body", why))?;
    let (now, name) = (app.api.clock.now(), rule.name.to_string());
    app.api.store.budgets.set(rule, None, now).await?;
    operator.did("budget.set", &name, "set");
    Ok(reply::ok(&read_view(&app, &name, &tenant, (DAYS, None)).await?))
}
