//! `GET /`: the agents of this server, by name and path.

use crate::api::{App, Shared};
use crate::reply::{self, Answer};
use axum::extract::State;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// An agent, and the prefix of its endpoints' paths.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct AgentPath {
    name: String,
    path: String,
}

/// The agents of this server (Agent Protocol, basic discovery).
#[utoipa::path(
    get, path = "/", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "Name and path of each agent.", body = Vec<AgentPath>)),
)]
pub(crate) async fn discover(State(app): State<Shared>) -> Answer {
    places(&app).await
}

/// The same, for clients with a path prefix of their own.
#[utoipa::path(
    get, path = "/ap/", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "Name and path of each agent.", body = Vec<AgentPath>)),
)]
pub(crate) async fn discover_here(State(app): State<Shared>) -> Answer {
    places(&app).await
}

async fn places(app: &App) -> Answer {
    let agents = app.api.store.views.agents().await?;
    let place = |name: &str| json!({"name": name, "path": format!("/agents/{name}")});
    let places: Vec<Value> = agents.iter().map(|agent| place(&agent.definition.name)).collect();
    Ok(reply::ok(&places))
}
