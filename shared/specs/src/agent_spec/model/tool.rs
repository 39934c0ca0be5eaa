//! Tools.

use super::{ClientTransport, Head, RetryPolicy};
use crate::agent_spec::property::Property;
use crate::agent_spec::secret::Secret;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Id, name and description.
    pub head: Head,
    /// Its arguments.
    pub inputs: Vec<Property>,
    /// Its results: one is the value itself, several are the members of an object.
    pub outputs: Vec<Property>,
    /// Whether a human agrees to each call.
    pub requires_confirmation: bool,
    /// Where it runs.
    pub kind: ToolKind,
}

/// Where a tool runs.
#[derive(Clone, Debug)]
pub enum ToolKind {
    /// At the server, found by its name.
    ServerTool,
    /// At the client, who gives the result.
    ClientTool,
    /// Behind an HTTP endpoint.
    RemoteTool(Box<Request>),
    /// At an MCP server.
    MCPTool {
        /// The way to it.
        client_transport: Arc<ClientTransport>,
        /// How requests are tried again.
        retry_policy: Option<RetryPolicy>,
    },
    /// In another runtime.
    BuiltinTool {
        /// Which one it is.
        tool_type: String,
        /// Its configuration.
        configuration: Option<Value>,
        /// The runtimes that have it; none for any.
        executor_name: Vec<String>,
        /// Its version.
        tool_version: Option<String>,
    },
}

/// An HTTP request. Every text in it is a template over the inputs.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where it goes.
    pub url: String,
    /// Its method.
    pub http_method: String,
    /// Where the endpoint is described.
    pub api_spec_uri: Option<String>,
    /// Its body; an empty map for none.
    pub data: Value,
    /// Its query.
    pub query_params: Map<String, Value>,
    /// Its headers.
    pub headers: Map<String, Value>,
    /// More headers.
    pub sensitive_headers: Option<Secret>,
    /// The addresses that it may go to; `None` for any.
    pub url_allow_list: Option<Vec<String>>,
    /// How it is tried again.
    pub retry_policy: Option<RetryPolicy>,
}
