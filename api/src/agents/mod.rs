//! Registered agents: list, register, read, remove, and engage.

mod bundle;
mod document;
pub(crate) mod engage;
pub(crate) mod input;
mod list;
mod register;
mod remove;
mod replace;
pub(crate) mod routes;

use serde::Serialize;
use turnstone_domain::agent::AgentFormat;
use utoipa::ToSchema;

/// An agent as lists show it.
#[derive(Serialize, ToSchema)]
struct ListedAgent {
    name: String,
    description: String,
    /// The address of its document.
    url: String,
    /// The prefix of the paths of its Agent Protocol endpoints.
    path: String,
    /// openagentspec or ossa.
    #[schema(value_type = String)]
    format: AgentFormat,
    updated_at: String,
}

/// An agent that was registered.
#[derive(Serialize, ToSchema)]
struct RegisteredAgent {
    name: String,
    description: String,
    url: String,
    path: String,
    #[schema(value_type = String)]
    format: AgentFormat,
    /// True if anything changed.
    changed: bool,
    warnings: Vec<Remark>,
}

/// A problem of a document, and its place.
#[derive(Serialize, ToSchema)]
struct Remark {
    line: u32,
    column: u32,
    rule: &'static str,
    /// error or warning.
    severity: &'static str,
    message: String,
}

/// Returns the address of an agent.
fn address(name: &str) -> String {
    format!("/agents/{name}")
}
