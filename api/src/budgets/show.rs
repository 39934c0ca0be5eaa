//! `GET /budgets/{name}?days=`: a shared budget and its spending.

use super::{DAYS, named, rows, since};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::OjsError;

/// Shows a shared budget. In the path its slashes are written `%2F`.
#[utoipa::path(
    get, path = "/budgets/{name}", operation_id = "show_budget", tag = "budgets",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The budget.", example = "tenant/acme"),
        ("days" = Option<u32>, Query, description = "How many days are shown, today included; 7 unless said."),
    ),
    responses((status = 200, description = "The budget.", body = rows::BudgetView)),
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let days = params.word("days", |text| text.parse().ok(), "a number of days")?.unwrap_or(DAYS);
    let name = named(&name, &tenant)?.to_string();
    let since = since(app.api.clock.now(), days);
    let found = app.api.store.budgets.list(Some(&name), tenant.name(), since).await?.pop();
    let budget = found.ok_or_else(|| OjsError::not_found("budget", &name))?;
    Ok(reply::ok(&rows::BudgetView::from(&budget)))
}
