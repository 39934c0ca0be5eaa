//! The result of RESOL: the tools of the turn, and the record of where they were found.

use crate::tool::Tool;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::Capability;
pub use turnstone_domain::checkpoint::{ResolBody, ResolvedTool, ToolSource};

/// The tools of a turn, by the names that the model knows. They are boxed, because a map has room for four and a turn
/// keeps it while its model thinks.
#[derive(Default)]
pub struct Bindings {
    by_name: HashMap<String, Box<Bound>>,
}

/// A tool that was found.
pub struct Bound {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The record of it that RESOL writes.
    pub record: ResolvedTool,
    /// The capability of a tool that the agent does not name individually, or that has rules of the configuration.
    pub own: Option<Box<Capability>>,
}

/// A tool of the turn, with the agent's rules for its calls.
pub struct Callable {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The rules.
    pub capability: Capability,
}

impl Callable {
    /// Returns true if a call may run twice under the same idempotency key: the tool is declared idempotent, or its MCP
    /// server announces that it is.
    pub fn is_idempotent(&self) -> bool {
        self.is_declared_idempotent() || self.tool.announces_idempotence()
    }

    /// Returns true if the configuration or the agent's document (OSSA `idempotency`) declares the tool idempotent. Reviews
    /// rely on this declaration alone, and on no announcement of a server.
    pub fn is_declared_idempotent(&self) -> bool {
        self.tool.spec().idempotent || self.capability.errors.idempotent
    }
}

/// Returns the longest that a call may take: the shorter of the tool's time and the agent's.
pub fn timeout(tool: &dyn Tool, capability: &Capability) -> Duration {
    capability.timeout_ms.map_or(tool.timeout(), |ms| tool.timeout().min(Duration::from_millis(ms)))
}

impl Bindings {
    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<&Bound> {
        self.by_name.get(name).map(Box::as_ref)
    }

    /// Adds a tool of which there is a record.
    pub fn insert_recorded(&mut self, agent: &AgentDefinition, record: ResolvedTool, tool: Arc<dyn Tool>) {
        let name = record.name.clone();
        let own = agent.capability(&name).is_none().then(|| Box::new(Capability::named(name.clone())));
        self.insert(name, Bound { tool, record, own });
    }

    /// Adds a tool.
    pub fn insert(&mut self, name: String, bound: Bound) {
        self.by_name.insert(name, Box::new(bound));
    }
}

impl Bound {
    /// Returns the agent's capability for it.
    pub fn capability<'a>(&'a self, agent: &'a AgentDefinition, name: &str) -> Option<&'a Capability> {
        self.own.as_deref().or_else(|| agent.capability(name))
    }
}
