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

pub(crate) use register::TENANTS;

use serde::{Deserialize, Serialize};
use turnstone_domain::agent::AgentFormat;
use turnstone_ojs::OpenValue;
use utoipa::ToSchema;

/// An agent as lists show it.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ListedAgent {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The address of its document.
    url: String,
    /// The prefix of the paths of its Agent Protocol endpoints.
    path: String,
    /// openagentspec or ossa.
    #[schema(value_type = String)]
    pub format: OpenValue<AgentFormat>,
    /// When it was changed last.
    pub updated_at: String,
    /// The tenants that it is kept to; null for all. A tenant sees its own name alone.
    #[serde(default)]
    pub tenants: Option<Vec<String>>,
}

/// An agent that was registered.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct RegisteredAgent {
    /// Its name.
    pub name: String,
    description: String,
    url: String,
    path: String,
    #[schema(value_type = String)]
    format: OpenValue<AgentFormat>,
    /// True if anything changed.
    pub changed: bool,
    /// The tenants that it is kept to; null for all.
    #[serde(default)]
    pub tenants: Option<Vec<String>>,
    /// Remarks on the document.
    pub warnings: Vec<Remark>,
}

/// A problem of a document, and its place.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Remark {
    /// From 1; 0 for the whole document.
    pub line: u32,
    /// From 1; 0 for the whole document.
    pub column: u32,
    /// The rule's stable name.
    pub rule: String,
    /// error or warning.
    pub severity: String,
    /// The problem, and how to fix it.
    pub message: String,
}

/// Returns the address of an agent.
fn address(name: &str) -> String {
    format!("/agents/{name}")
}
