//! Budgets: limits on the spending of a tenant, an agent, on a model, of the fleet or of one engagement, and the
//! spending itself.

pub(crate) mod costs;
pub(crate) mod engagement_cost;
mod forget;
pub(crate) mod list;
mod own;
mod put;
mod raise;
pub(crate) mod routes;
pub(crate) mod rows;
mod show;

use crate::api::Shared;
use crate::engagements::awaited_budget::Awaited;
use crate::reply::Failure;
use crate::request::Tenant;
use serde::Deserialize;
use turnstone_domain::Timestamp;
use turnstone_domain::budget::{Amount, BudgetName};
use turnstone_ojs::OjsError;
use turnstone_store::Raise;
use utoipa::ToSchema;

/// The default number of days.
const DAYS: u32 = 7;
const DAY_MS: i64 = 86_400_000;

/// Returns the name in the path. A tenant may name its own budgets only.
fn named(name: &str, tenant: &Tenant) -> Result<BudgetName, Failure> {
    let name: BudgetName = name.parse().map_err(|why: String| OjsError::invalid_request("the path", why))?;
    match tenant.name() {
        Some(tenant) if name.tenant.as_deref() != Some(tenant) => {
            Err(OjsError::not_found("budget", &name.to_string()).into())
        }
        _ => Ok(name),
    }
}

/// Returns a shared budget, and what the oldest job needs that waits for it.
async fn read_view(
    app: &Shared,
    name: &str,
    tenant: &Tenant,
    (days, awaited): (u32, Option<Awaited>),
) -> Result<rows::BudgetView, Failure> {
    let since = since(app.api.clock.now(), days);
    let found = app.api.store.budgets.list(Some(name), tenant.name(), since).await?.pop();
    let budget = found.ok_or_else(|| OjsError::not_found("budget", name))?;
    let awaited = match awaited {
        Some(awaited) => Some(awaited.now(app, Some(tenant)).await?),
        None => None,
    };
    Ok(rows::BudgetView::from(&budget).with_awaited(awaited))
}

/// Returns the wait of the oldest job that waits for a shared budget. A change of the budget lets the job go on, so ask
/// before it.
async fn find_awaited(app: &Shared, name: &str, tenant: &Tenant) -> Result<Option<Awaited>, Failure> {
    let store = &app.api.store;
    let Some(waiter) = store.budgets.oldest_waiting_job(name).await? else { return Ok(None) };
    let job = store.views.job_of(&waiter, tenant.name()).await?;
    match job.as_ref().and_then(|job| Some((job, job.agent.as_ref()?))) {
        Some((job, agent)) => Awaited::of(app, &agent.engagement_id, job).await,
        None => Ok(None),
    }
}

/// Returns the beginning of the day `days` before today.
fn since(now: Timestamp, days: u32) -> Timestamp {
    let today = now.0.div_euclid(DAY_MS);
    Timestamp((today - i64::from(days.max(1)) + 1) * DAY_MS)
}

/// Returns a day of UTC as text.
fn date(day: i64) -> String {
    let mut text = Timestamp(day.saturating_mul(DAY_MS)).to_rfc3339();
    text.truncate(10);
    text
}

/// Amounts to add to existing limits.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"tokens_per_day": 500_000, "cost_per_day": "10.00"}))]
#[derive(Default)]
struct RaiseRequest {
    /// Tokens altogether.
    tokens: u32,
    /// Tokens per day.
    tokens_per_day: u32,
    /// Money altogether.
    #[schema(value_type = String)]
    cost: Amount,
    /// Money per day.
    #[schema(value_type = String)]
    cost_per_day: Amount,
}

impl RaiseRequest {
    /// Returns the same for the store.
    fn by(&self) -> Result<Raise, Failure> {
        let by = Raise {
            tokens: self.tokens.into(),
            tokens_per_day: self.tokens_per_day.into(),
            cost: self.cost.0,
            cost_per_day: self.cost_per_day.0,
        };
        if by == Raise::default() {
            let why = "must raise tokens, tokens_per_day, cost or cost_per_day by more than nothing";
            return Err(OjsError::invalid_request("the body", why).into());
        }
        Ok(by)
    }
}
