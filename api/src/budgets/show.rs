//! `GET /budgets/{name}?days=`: a shared budget and its spending.

use super::{DAYS, find_awaited, named, read_view, rows};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;

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
    let awaited = find_awaited(&app, &name, &tenant).await?;
    Ok(reply::ok(&read_view(&app, &name, &tenant, (days, awaited)).await?))
}
