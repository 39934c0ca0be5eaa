//! `GET /engagements/{id}/cost`: the cost of an engagement, by job, phase and tool.

use super::rows;
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_domain::EngagementId;
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// Spending on one thing.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct CostPart {
    job_id: String,
    /// The phase, or the tool.
    name: String,
    runs: i64,
    duration_ms: i64,
    tokens_in: i64,
    tokens_cached: i64,
    tokens_out: i64,
    cost: String,
}

/// The cost of an engagement.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct Cost {
    engagement_id: String,
    /// Of the engagement and its delegates.
    tokens: rows::Tokens,
    /// Of the engagement and its delegates.
    cost: rows::Money,
    phases: Vec<CostPart>,
    tools: Vec<CostPart>,
}

/// The cost of an engagement, by job, phase and tool.
#[utoipa::path(
    get, path = "/engagements/{id}/cost", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The cost.", body = Cost)),
)]
pub(crate) async fn engagement_cost(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
) -> Answer {
    let engagement = EngagementId::from(id.as_str());
    let found = app.api.store.views.engagement_of(&engagement, tenant.name()).await?;
    found.ok_or_else(|| OjsError::not_found("engagement", &id))?;
    let mut shown = parts(&app, &engagement).await?;
    let budget = app.api.store.views.budget(&engagement).await?;
    let sides = rows::sides(&budget);
    shown["engagement_id"] = id.into();
    shown["tokens"] = sides["tokens"].clone();
    shown["cost"] = sides["cost"].clone();
    Ok(reply::ok(&shown))
}

/// Returns the phases and tools of an engagement with their cost.
pub(crate) async fn parts(app: &App, engagement: &EngagementId) -> Result<Value, Failure> {
    let cost = app.api.store.budgets.cost_of(engagement).await?;
    let part = |job: &str, name: &str, spent| {
        let mut shown = rows::spending(spent);
        shown["job_id"] = job.into();
        shown["name"] = name.into();
        shown
    };
    let phases: Vec<Value> =
        cost.phases.iter().map(|(job, phase, spent)| part(job.as_str(), phase.as_str(), spent)).collect();
    let tools: Vec<Value> =
        cost.tools.iter().map(|(job, tool, spent)| part(job.as_str(), tool, spent)).collect();
    Ok(json!({"phases": phases, "tools": tools}))
}
