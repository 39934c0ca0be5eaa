//! Engagements: state, conversation, checkpoints, tool journal, audit and events.

mod audit;
mod checkpoints;
mod events;
mod messages;
mod show;
mod state;
mod tool_calls;

use crate::api::{App, Shared};
use crate::reply::Failure;
use axum::Router;
use axum::routing::get;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{AgentDefinition, EngagementId, JobId};
use turnstone_ojs::OjsError;

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/engagements/{id}", get(show::show))
        .route("/engagements/{id}/messages", get(messages::messages))
        .route("/engagements/{id}/checkpoints", get(checkpoints::checkpoints))
        .route("/engagements/{id}/tool-calls", get(tool_calls::tool_calls))
        .route("/engagements/{id}/audit", get(audit::audit))
        .route("/engagements/{id}/events", get(events::events))
}

/// The engagement, its agent and its latest job, or 404.
async fn find(app: &App, id: &str) -> Result<(Engagement, AgentDefinition, JobId), Failure> {
    let found = app.api.store.views.engagement(&EngagementId::from(id)).await?;
    found.ok_or_else(|| OjsError::not_found("engagement", id).into())
}
