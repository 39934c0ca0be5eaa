//! What RESOL leaves.

use crate::tool::Transport;
use serde::{Deserialize, Serialize};
use turnstone_domain::agent::errors::RetryRule;

/// The body of RESOL's checkpoint. Descriptions and schemas are not in it, or every turn would write them again: their
/// digests are, so that a resumed turn offers nothing else.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ResolBody {
    /// Tools on offer, in the agent's order.
    pub tools: Vec<String>,
    /// Where each came from (RS-11); empty in the first version of the body.
    #[serde(default)]
    pub resolved: Vec<ResolvedTool>,
    /// Declared tools that this turn has not, and why.
    pub unavailable: Vec<(String, String)>,
}

/// OSSA's ResolvedTool, without what the digest stands for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResolvedTool {
    /// Its name for the model.
    pub name: String,
    /// Where it came from.
    pub source: ToolSource,
    /// How it is called.
    pub transport: Transport,
    /// The longest a call may take, in milliseconds.
    pub timeout_ms: u64,
    /// How failed calls of it are tried again, when the agent's document says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<RetryRule>,
    /// The digest of description and input schema as the model is told of them.
    pub digest: String,
}

/// Where a tool came from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolSource {
    /// Declared in the manifest.
    Manifest {
        /// The position in `spec.tools`, from 0.
        tool_index: u32,
    },
    /// Discovered at an MCP server.
    Mcp {
        /// Where the server is, without secrets.
        server_uri: String,
        /// What the server calls the tool.
        capability: String,
    },
    /// In the server's own registry.
    Function {
        /// Its name there.
        handler: String,
    },
    /// Another agent.
    Delegation {
        /// Its name.
        agent_id: String,
    },
}
