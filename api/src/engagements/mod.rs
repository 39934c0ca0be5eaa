//! Engagements: state, conversation, checkpoints, tool journal, audit and events.

mod audit;
mod checkpoints;
mod diff;
mod events;
mod export;
mod fork;
mod import;
mod messages;
mod session_state;
mod show;
mod state;
mod tool_calls;

use crate::api::{App, Shared};
use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{AgentDefinition, EngagementId, JobId};
use turnstone_ojs::OjsError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(show::show))
        .routes(routes!(fork::fork))
        .routes(routes!(diff::diff))
        .routes(routes!(export::export))
        .routes(routes!(import::import))
        .routes(routes!(messages::messages))
        .routes(routes!(checkpoints::checkpoints))
        .routes(routes!(session_state::session_state))
        .routes(routes!(tool_calls::tool_calls))
        .routes(routes!(audit::audit))
        .routes(routes!(events::events))
}

/// The engagement, its agent and its latest job, or 404.
async fn find(app: &App, id: &str, tenant: &Tenant) -> Result<(Engagement, AgentDefinition, JobId), Failure> {
    let found = app.api.store.views.engagement_of(&EngagementId::from(id), tenant.name()).await?;
    found.ok_or_else(|| OjsError::not_found("engagement", id).into())
}
