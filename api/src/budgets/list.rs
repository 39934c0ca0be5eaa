//! `GET /budgets?days=`: shared budgets by name.

use super::{DAYS, rows, since};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// Shared budgets by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct BudgetList {
    /// By name.
    pub budgets: Vec<rows::BudgetView>,
}

/// Lists the budgets that engagements share, by name; with the header `X-OJS-Tenant` those of the tenant.
#[utoipa::path(
    get, path = "/budgets", operation_id = "list_budgets", tag = "budgets",
    security(("tenant" = ["viewer"])),
    params(("days" = Option<u32>, Query, description = "How many days are shown, today included; 7 unless said.")),
    responses((status = 200, description = "The budgets.", body = BudgetList)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let days = params.word("days", |text| text.parse().ok(), "a number of days")?.unwrap_or(DAYS);
    let since = since(app.api.clock.now(), days);
    let budgets = app.api.store.budgets.list(None, tenant.name(), since).await?;
    Ok(reply::ok(&BudgetList { budgets: budgets.iter().map(rows::BudgetView::from).collect() }))
}
