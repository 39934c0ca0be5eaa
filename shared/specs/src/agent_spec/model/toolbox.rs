//! Sources of tools.

use super::{ClientTransport, Head, RetryPolicy};
use crate::agent_spec::property::Property;
use std::sync::Arc;

/// The tools of an MCP server.
#[derive(Clone, Debug)]
pub struct MCPToolBox {
    /// Id, name and description.
    pub head: Head,
    /// Requires a confirmation before each call of any of them.
    pub requires_confirmation: bool,
    /// The way to the server.
    pub client_transport: Arc<ClientTransport>,
    /// The retries of requests.
    pub retry_policy: Option<RetryPolicy>,
    /// The tools that are used; `None` for all of them, an empty list for none.
    pub tool_filter: Option<Vec<ToolFilter>>,
}

/// A tool that the server must have.
#[derive(Clone, Debug)]
pub enum ToolFilter {
    /// By its name.
    Name(String),
    /// By its name and signature.
    Spec(MCPToolSpec),
}

/// A tool as the document expects it.
#[derive(Clone, Debug)]
pub struct MCPToolSpec {
    /// Id, name, and a description that replaces the server's.
    pub head: Head,
    /// Its arguments, which must be those of the server; `None` for any.
    pub inputs: Option<Vec<Property>>,
    /// Its result; `None` for any.
    pub outputs: Option<Vec<Property>>,
    /// Requires a confirmation before each call.
    pub requires_confirmation: bool,
}
