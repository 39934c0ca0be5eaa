//! `GET /engagements/{id}/cost`: the cost of an engagement, by job, phase and tool.

use super::rows;
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::{EngagementId, JobId};
use turnstone_ojs::OjsError;
use turnstone_store::Spending;
use utoipa::ToSchema;

/// Spending on one thing.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CostPart {
    /// The job.
    pub job_id: String,
    /// The phase, or the tool.
    pub name: String,
    /// How often it ran.
    pub runs: i64,
    /// How long it ran altogether.
    pub duration_ms: i64,
    /// Tokens of prompts.
    pub tokens_in: i64,
    /// Those that the provider had in its cache.
    pub tokens_cached: i64,
    /// Tokens of answers.
    pub tokens_out: i64,
    /// In units of the currency.
    pub cost: String,
}

impl CostPart {
    fn of(job: JobId, name: &str, spent: &Spending) -> Self {
        Self {
            job_id: job.to_string(),
            name: name.to_owned(),
            runs: spent.runs,
            duration_ms: spent.duration_ms,
            tokens_in: spent.tokens_in,
            tokens_cached: spent.tokens_cached,
            tokens_out: spent.tokens_out,
            cost: rows::money(spent.cost),
        }
    }
}

/// The phases and tools of an engagement with their cost.
#[derive(Serialize)]
pub(crate) struct CostParts {
    phases: Vec<CostPart>,
    tools: Vec<CostPart>,
}

/// The cost of an engagement.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Cost {
    engagement_id: String,
    /// Of the engagement and its delegates.
    pub tokens: rows::Tokens,
    /// Of the engagement and its delegates.
    pub cost: rows::Money,
    /// By job and phase.
    pub phases: Vec<CostPart>,
    /// By job and tool.
    pub tools: Vec<CostPart>,
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
    let CostParts { phases, tools } = parts(&app, &engagement).await?;
    let budget = app.api.store.views.budget(&engagement).await?;
    let (tokens, cost) = (rows::Tokens::from(&budget), rows::Money::from(&budget.money));
    Ok(reply::ok(&Cost { engagement_id: id, tokens, cost, phases, tools }))
}

/// Returns the phases and tools of an engagement with their cost.
pub(crate) async fn parts(app: &App, engagement: &EngagementId) -> Result<CostParts, Failure> {
    let cost = app.api.store.budgets.cost_of(engagement).await?;
    let phases = cost.phases.into_iter().map(|(job, phase, spent)| CostPart::of(job, phase.as_str(), &spent));
    let tools = cost.tools.into_iter().map(|(job, tool, spent)| CostPart::of(job, &tool, &spent));
    Ok(CostParts { phases: phases.collect(), tools: tools.collect() })
}
