//! Registered agents: list, register, read.

mod document;
mod list;
mod register;

use crate::api::Shared;
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use turnstone_domain::AgentDefinition;

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/agents", get(list::list).post(register::register))
        .route("/agents/{name}", get(document::document))
}

/// An agent as lists show it.
fn summary(agent: &AgentDefinition) -> Value {
    json!({
        "name": agent.name,
        "description": agent.description,
        "url": format!("/agents/{}", agent.name),
        "format": agent.format,
    })
}
