//! A tool of an MCP server.

use super::catalogue::digest_of;
use super::config::McpConfig;
use super::outcome::{self, CallOutput};
use super::server::McpServer;
use crate::tool::files;
use crate::tool::{Answer, Invocation, Tool, ToolError, Transport, within};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Weak;
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::digest;
use turnstone_domain::schema::Schema;

/// A tool that is called by `tools/call`.
#[derive(Debug)]
pub struct McpTool {
    spec: ToolSpec,
    remote: String,
    // Weak, because the server keeps its tools.
    server: Weak<McpServer>,
    server_uri: String,
    timeout: Duration,
    max_response_bytes: usize,
    digest: String,
    output_schema: Option<OutputSchema>,
    hints: Hints,
}

/// A server's announcements about the effects of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hints {
    /// `readOnlyHint`.
    pub(super) read_only: bool,
    /// `idempotentHint`.
    pub(super) idempotent: bool,
}

/// The schema that the server promises for its structured content.
pub(super) struct OutputSchema(pub(super) Schema);

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputSchema")
    }
}

impl McpTool {
    pub(super) fn new(
        spec: ToolSpec,
        (output_schema, hints): (Option<OutputSchema>, Hints),
        remote: String,
        server: Weak<McpServer>,
        config: &McpConfig,
    ) -> Self {
        let digest = digest_of(&spec.description, &spec.input_schema);
        let timeout = Duration::from_millis(config.timeout_ms);
        let max_response_bytes = config.max_response_bytes;
        Self {
            spec,
            remote,
            server,
            server_uri: config.address(),
            timeout,
            max_response_bytes,
            digest,
            output_schema,
            hints,
        }
    }

    /// Returns the server's name for it.
    #[must_use]
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// Returns the address of its server, without secrets.
    #[must_use]
    pub fn server_uri(&self) -> &str {
        &self.server_uri
    }

    /// Returns the digest of description and schema.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn description(&self) -> &str {
        &self.spec.description
    }

    pub(super) fn schema_digest(&self) -> String {
        digest::of_json(&self.spec.input_schema)
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn transport(&self) -> Transport {
        Transport::Mcp
    }

    fn is_read_only(&self) -> bool {
        self.hints.read_only
    }

    fn announces_idempotence(&self) -> bool {
        self.hints.idempotent || self.hints.read_only
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        self.respond(invocation).await.map(|output| output.value)
    }

    async fn answer(&self, invocation: Invocation<'_>) -> Result<Answer, ToolError> {
        let CallOutput { mut value, has_files, notes } = self.respond(invocation).await?;
        let artifacts = match has_files {
            true => files::take(invocation.call_id, &self.spec.name, &mut value),
            false => Vec::new(),
        };
        Ok(Answer { output: value, artifacts, notes })
    }
}

impl McpTool {
    /// Calls it; returns its output.
    async fn respond(&self, invocation: Invocation<'_>) -> Result<CallOutput, ToolError> {
        let name = &self.spec.name;
        let refused = |problem: &str| ToolError::Refused(format!("tool {name}: {problem}"));
        let server = self.server.upgrade().ok_or_else(|| refused("the worker is stopping"))?;
        let arguments = match invocation.input {
            Value::Object(map) => map.clone(),
            Value::Null => Map::new(),
            _ => return Err(refused("the arguments must be an object")),
        };
        let call =
            server.call(&self.remote, arguments, (invocation.call_id, invocation.identity.user.as_ref()));
        let reply = within(invocation.timeout, call, || format!("tool {name} did not answer")).await?;
        let promised = self.output_schema.as_ref().map(|schema| &schema.0);
        outcome::output(name, reply, promised, self.max_response_bytes)
    }
}
