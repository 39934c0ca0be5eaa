//! `GET /costs?days=&tag=`: spending on models, by day, tenant and model.

use super::{DAYS, date, rows, since};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Spending on a model in a day.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct Daily {
    day: String,
    tenant: Option<String>,
    /// `provider/model`.
    model: String,
    /// Model calls.
    runs: i64,
    tokens_in: i64,
    tokens_cached: i64,
    tokens_out: i64,
    cost: String,
}

/// Spending, newest day first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct Costs {
    costs: Vec<Daily>,
}

/// Spending on models, by day, tenant and model, as far as history is kept.
#[utoipa::path(
    get, path = "/costs", tag = "budgets",
    security(("tenant" = ["viewer"])),
    params(
        ("days" = Option<u32>, Query, description = "How many days are shown, today included; 7 unless said."),
        ("tag" = Option<String>, Query, description = "Only jobs with this tag, and their delegates."),
    ),
    responses((status = 200, description = "What was spent.", body = Costs)),
)]
pub(crate) async fn costs(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let days = params.word("days", |text| text.parse().ok(), "a number of days")?.unwrap_or(DAYS);
    let daily = app
        .api
        .store
        .budgets
        .daily(tenant.name(), params.text("tag"), since(app.api.clock.now(), days))
        .await?;
    let shown: Vec<Value> = daily
        .iter()
        .map(|daily| {
            let mut shown = rows::spending(&daily.spent);
            shown["day"] = date(daily.day).into();
            shown["tenant"] = daily.tenant.clone().into();
            shown["model"] = daily.model.clone().into();
            shown
        })
        .collect();
    Ok(reply::ok(&json!({ "costs": shown })))
}
