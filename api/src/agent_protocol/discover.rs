//! `GET /`: the agents of this server, by name and path.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// An agent, and the prefix of its endpoints' paths.
#[derive(Serialize, ToSchema)]
struct AgentPath {
    name: String,
    path: String,
}

/// The agents of this server that serve the tenant (Agent Protocol, basic discovery).
#[utoipa::path(
    get, path = "/", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "Name and path of each agent.", body = Vec<AgentPath>)),
)]
pub(crate) async fn discover(State(app): State<Shared>, tenant: Tenant) -> Answer {
    let agents =
        app.api.store.views.agents(tenant.name()).await?.into_iter().map(|agent| agent.definition.name);
    let paths = agents.map(|name| AgentPath { path: format!("/agents/{name}"), name });
    Ok(reply::ok(&paths.collect::<Vec<_>>()))
}
