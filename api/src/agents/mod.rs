//! Registered agents: list, register, read, remove, and engage.

mod bundle;
mod document;
pub(crate) mod engage;
pub(crate) mod input;
mod list;
mod register;
mod remove;
mod replace;

use crate::api::Shared;
use serde_json::{Value, json};
use turnstone_domain::AgentDefinition;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list::list, register::register)).routes(routes!(
        document::document,
        engage::engage,
        replace::replace,
        remove::remove
    ))
}

/// An agent as lists show it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct ListedAgent {
    name: String,
    description: String,
    /// The address of its document.
    url: String,
    /// The prefix of the paths of its Agent Protocol endpoints.
    path: String,
    /// openagentspec or ossa.
    format: String,
    updated_at: String,
}

/// An agent that was registered.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct RegisteredAgent {
    name: String,
    description: String,
    url: String,
    path: String,
    format: String,
    /// True if anything changed.
    changed: bool,
    warnings: Vec<Remark>,
}

/// A problem of a document, and its place.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct Remark {
    line: u64,
    column: u64,
    rule: String,
    /// error or warning.
    severity: String,
    message: String,
}

/// Returns an agent as lists show it.
fn summary(agent: &AgentDefinition) -> Value {
    json!({
        "name": agent.name,
        "description": agent.description,
        "url": format!("/agents/{}", agent.name),
        "path": format!("/agents/{}", agent.name),
        "format": agent.format,
    })
}
