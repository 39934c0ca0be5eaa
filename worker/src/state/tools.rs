//! The result of RESOL: the tools of the turn, and the record of where they were found.

use crate::tool::{Tool, Transport};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::errors::RetryRule;

/// The body of RESOL's checkpoint. It holds digests of descriptions and schemas, because every turn would
/// write the texts again. With the digests, a resumed turn offers the same tools only.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ResolBody {
    /// Tools on offer, in the agent's order.
    pub tools: Vec<String>,
    /// The sources of the tools (RS-11); empty in the first version of the body.
    #[serde(default)]
    pub resolved: Vec<ResolvedTool>,
    /// Declared tools that this turn does not have, each with the reason.
    pub unavailable: Vec<(String, String)>,
}

/// OSSA's ResolvedTool, with a digest in place of its texts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResolvedTool {
    /// Its name for the model.
    pub name: String,
    /// Its source.
    pub source: ToolSource,
    /// The transport of its calls.
    pub transport: Transport,
    /// The longest a call may take, in milliseconds.
    pub timeout_ms: u64,
    /// The retry policy of its failed calls, when the agent's document has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<RetryRule>,
    /// The digest of description and input schema in the form that the model receives.
    pub digest: String,
}

/// The source of a tool.
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
        /// The server's address, without secrets.
        server_uri: String,
        /// The server's name for the tool.
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

/// The tools of a turn, by the names that the model knows.
#[derive(Default)]
pub struct Bindings {
    by_name: HashMap<String, Bound>,
}

/// A tool that was found.
pub struct Bound {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The record of it that RESOL writes.
    pub record: ResolvedTool,
    /// The capability of a tool that the agent does not name individually, or that has rules of the configuration.
    pub own: Option<Capability>,
}

impl Bindings {
    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<&Bound> {
        self.by_name.get(name)
    }

    /// Adds a tool of which there is a record.
    pub fn insert_recorded(&mut self, agent: &AgentDefinition, record: ResolvedTool, tool: Arc<dyn Tool>) {
        let name = record.name.clone();
        let own = agent.capability(&name).is_none().then(|| Capability::named(name.clone()));
        self.by_name.insert(name, Bound { tool, record, own });
    }

    /// Adds a tool.
    pub fn insert(&mut self, name: String, bound: Bound) {
        self.by_name.insert(name, bound);
    }
}

impl Bound {
    /// Returns the agent's capability for it.
    pub fn capability<'a>(&'a self, agent: &'a AgentDefinition, name: &str) -> Option<&'a Capability> {
        self.own.as_ref().or_else(|| agent.capability(name))
    }
}
