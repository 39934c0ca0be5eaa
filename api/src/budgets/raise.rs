//! `POST /budgets/{name}/raise`: raises the limits of a shared budget.

use super::{DAYS, RaiseRequest, find_awaited, named, read_view, rows};
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::budget::BudgetRule;
use turnstone_ojs::OjsError;
use turnstone_store::Raise;

/// Raises the limits of a shared budget; jobs that wait for it continue.
#[utoipa::path(
    post, path = "/budgets/{name}/raise", tag = "budgets",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The budget.", example = "tenant/acme")),
    request_body = RaiseRequest,
    responses((status = 200, description = "It is raised.", body = rows::BudgetView)),
)]
pub(crate) async fn raise(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    operator: Operator,
    body: JsonBytes,
) -> Answer {
    let by = body.read::<RaiseRequest>()?.by()?;
    let name = named(&name, &tenant)?.to_string();
    let now = app.api.clock.now();
    let awaited = find_awaited(&app, &name, &tenant).await?;
    let budgets = &app.api.store.budgets;
    if let Some(budget) = budgets.list(Some(&name), tenant.name(), now).await?.pop() {
        limited(&budget.rule, by)?;
    }
    if budgets.raise(&name, tenant.name(), by, now).await?.is_none() {
        return Err(OjsError::not_found("budget", &name).into());
    }
    operator.did("budget.raise", &name, "raised");
    Ok(reply::ok(&read_view(&app, &name, &tenant, (DAYS, awaited)).await?))
}

/// Refuses to raise a limit that does not exist: the waiting jobs would still wait, and the caller would not know.
fn limited(rule: &BudgetRule, by: Raise) -> Result<(), OjsError> {
    let limits = [
        ("tokens", by.tokens, rule.tokens),
        ("tokens_per_day", by.tokens_per_day, rule.tokens_per_day),
        ("cost", by.cost, rule.cost),
        ("cost_per_day", by.cost_per_day, rule.cost_per_day),
    ];
    let Some((name, ..)) = limits.iter().find(|(_, by, limit)| *by > 0 && limit.is_none()) else {
        return Ok(());
    };
    let there: Vec<&str> =
        limits.iter().filter(|(.., limit)| limit.is_some()).map(|(name, ..)| *name).collect();
    let why =
        format!("cannot be raised: budget {} does not limit it; it limits {}", rule.name, there.join(", "));
    Err(OjsError::invalid_request(name, why))
}
