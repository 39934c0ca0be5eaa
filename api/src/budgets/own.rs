//! `PATCH /engagements/{id}/budget`: the limits of one engagement and its delegates.

use super::{RaiseRequest, rows};
use crate::answers::AwaitedBudget;
use crate::api::{App, Shared};
use crate::audit::Operator;
use crate::engagements::awaited_budget::Awaited;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize};
use turnstone_domain::EngagementId;
use turnstone_domain::budget::{Amount, OnExceed};
use turnstone_ojs::OjsError;
use turnstone_store::OwnBudget;
use utoipa::ToSchema;

/// Changes of an engagement's budget; members that are not given stay, `null` removes a limit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"raise": {"tokens": 50_000}}))]
struct PatchBudget {
    /// The most tokens.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    tokens: Option<Option<i64>>,
    /// The most money, as a decimal.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    cost: Option<Option<Amount>>,
    /// Added to the existing limits: `tokens` and `cost`.
    raise: Option<RaiseRequest>,
    /// The treatment of a job that needs more than is left: retry, park or fail.
    #[schema(value_type = Option<String>)]
    on_exceed: Option<OnExceed>,
}

/// A budget of an engagement.
#[derive(Serialize, ToSchema)]
struct Own {
    engagement_id: String,
    tokens: rows::Tokens,
    cost: rows::Money,
    #[schema(value_type = Option<String>)]
    on_exceed: Option<OnExceed>,
    /// The wait of its job for this budget, with what is still missing; absent when it did not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited: Option<AwaitedBudget>,
}

/// Distinguishes `null` from an absent member.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Changes the limits of an engagement and its delegates; jobs that wait for it continue.
#[utoipa::path(
    patch, path = "/engagements/{id}/budget", tag = "budgets",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The engagement.")),
    request_body = PatchBudget,
    responses((status = 200, description = "It is changed.", body = Own)),
)]
pub(crate) async fn own(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    operator: Operator,
    body: JsonBytes,
) -> Answer {
    let sent: PatchBudget = body.read()?;
    if sent.tokens.flatten().is_some_and(|tokens| tokens < 0) {
        return Err(OjsError::invalid_request("tokens", "must not be negative").into());
    }
    let raise = sent.raise.map(|raise| raise.by()).transpose()?.unwrap_or_default();
    if raise.tokens_per_day > 0 || raise.cost_per_day > 0 {
        let why = "an engagement has no budget per day: raise tokens or cost";
        return Err(OjsError::invalid_request("raise", why).into());
    }
    let change = OwnBudget {
        tokens: sent.tokens,
        cost: sent.cost.map(|cost| cost.map(|amount| amount.0)),
        raise,
        on_exceed: sent.on_exceed,
    };
    let (engagement, now) = (EngagementId::from(id.as_str()), app.api.clock.now());
    let awaited = waiting(&app, &id, &tenant).await?;
    let changed = app.api.store.budgets.set_own(&engagement, tenant.name(), change, now).await?;
    let budget = changed.ok_or_else(|| OjsError::not_found("engagement", &id))?;
    operator.did("engagement.budget", &id, "set");
    let (tokens, cost) = (rows::Tokens::from(&budget), rows::Money::from(&budget.money));
    let awaited = awaited.map(|awaited| {
        let purse = budget.purse(awaited.measure());
        awaited.with(Some(purse))
    });
    Ok(reply::ok(&Own { engagement_id: id, tokens, cost, on_exceed: budget.on_exceed, awaited }))
}

/// Returns the wait of the engagement's job for this very budget, as it is before the change: the change lets it go on.
async fn waiting(app: &App, id: &str, tenant: &Tenant) -> Result<Option<Awaited>, Failure> {
    let (engagement, _, job) = crate::engagements::find(app, id, tenant).await?;
    let Some(job) = app.api.store.views.job(&job).await? else { return Ok(None) };
    let awaited = Awaited::of(app, &engagement.id, &job).await?;
    Ok(awaited.filter(|awaited| awaited.engagement.as_ref() == Some(&engagement.id)))
}
