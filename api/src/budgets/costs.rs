//! `GET /costs?days=&tag=`: spending on models, by day, tenant and model.

use super::{DAYS, date, rows::money, since};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_store::DailyCost;
use utoipa::ToSchema;

/// Spending on a model in a day.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Daily {
    /// The day of UTC.
    pub day: String,
    /// The tenant of the jobs.
    pub tenant: Option<String>,
    /// `provider/model`.
    pub model: String,
    /// Model calls.
    pub runs: i64,
    duration_ms: i64,
    /// Tokens of prompts.
    pub tokens_in: i64,
    /// Those that the provider had in its cache.
    pub tokens_cached: i64,
    /// Tokens of answers.
    pub tokens_out: i64,
    /// In units of the currency.
    pub cost: String,
}

/// Spending, newest day first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Costs {
    /// Days, models and tenants.
    pub costs: Vec<Daily>,
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
    Ok(reply::ok(&Costs { costs: daily.into_iter().map(Daily::from).collect() }))
}

impl From<DailyCost> for Daily {
    fn from(daily: DailyCost) -> Self {
        let spent = daily.spent;
        Self {
            day: date(daily.day),
            tenant: daily.tenant,
            model: daily.model,
            runs: spent.runs,
            duration_ms: spent.duration_ms,
            tokens_in: spent.tokens_in,
            tokens_cached: spent.tokens_cached,
            tokens_out: spent.tokens_out,
            cost: money(spent.cost),
        }
    }
}
