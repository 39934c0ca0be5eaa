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
    /// Requires a confirmation before each call.
    pub requires_confirmation: bool,
    /// The place of its execution.
    pub kind: ToolKind,
}

/// The place in which a tool is executed.
#[derive(Clone, Debug)]
pub enum ToolKind {
    /// At the server, found by its name.
    ServerTool,
    /// At the client, which returns the result.
    ClientTool,
    /// Behind an HTTP endpoint.
    RemoteTool(Box<Request>),
    /// At an MCP server.
    MCPTool {
        /// The way to it.
        client_transport: Arc<ClientTransport>,
        /// The retries of requests.
        retry_policy: Option<RetryPolicy>,
    },
    /// In another runtime.
    BuiltinTool {
        /// The name of the tool in that runtime.
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
    /// Its address.
    pub url: String,
    /// Its method.
    pub http_method: String,
    /// The address of the endpoint's description.
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
    /// Its retries.
    pub retry_policy: Option<RetryPolicy>,
}
