//! The result of RESOL: the tools of the turn, and the record of where they were found.

use crate::tool::Tool;
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::Capability;
pub use turnstone_domain::checkpoint::{ResolBody, ResolvedTool, ToolSource};

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
