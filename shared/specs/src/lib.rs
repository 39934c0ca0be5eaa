//! Readers of documents about agents: OpenAgentSpec documents and OSSA 0.2.9 manifests, in YAML or JSON. They
//! return the one model that Turnstone runs, [`turnstone_domain::AgentDefinition`]. Documents of Agent Spec
//! have a model of their own ([`agent_spec`]); a flow becomes an agent that carries its document.
//!
//! A reader reports every problem that it can find in one pass, each with line, column and the broken rule.
//! An unknown key is an error: a misspelt `input_restrictions` must not silently remove a restriction. A
//! demand that this version does not support is refused or warned about, never silently ignored.
//!
//! ```text
//!  text ─▶ tree (places of keys and values) ─ shape ─┬─ openagentspec ─┬─▶ AgentDefinition
//!                                                    ╰─ ossa ──────────╯
//!  text ─▶ agent_spec: reader ─▶ component ─ class, rules ─▶ model ─ runnable ─▶ AgentDefinition with its flow
//!
//!  under all: name, expression (CEL), problem, suggest
//! ```

pub mod agent_spec;
mod expression;
mod name;
mod openagentspec;
mod ossa;
mod problem;
mod shape;
mod suggest;
mod tree;

pub use ossa::with_template;
pub use problem::{Problem, Severity};
pub use tree::NUL_RULE;

use problem::Problems;
use std::fmt;
use std::sync::Arc;
use tree::Node;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{Capability, Endpoint, ToolRuleBook, capability_name};
use turnstone_domain::schema::Allowance;

/// The format of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `kind: openagentspec:v1/agent`.
    OpenAgentSpec,
    /// `apiVersion: ossa/v0.2.9`, `kind: Agent`.
    Ossa,
    /// `component_type` and `agentspec_version`.
    AgentSpec,
}

/// The names that the server knows, to resolve references.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Names of the tools in the registry.
    pub tools: &'a [&'a str],
    /// Those of them that take no credentials.
    pub keyless: &'a [&'a str],
    /// Names of the MCP servers; their tools are named `<server>.<tool>`.
    pub servers: &'a [&'a str],
    /// Names of the agents that are hosted.
    pub agents: &'a [&'a str],
    /// The hosts whose agents may be named as `oagent://host/path/name`: `host` or `host:port`.
    pub remote: &'a [&'a str],
    /// The users and groups that may be named as reviewers; `None` allows every name (OAS-30).
    pub reviewers: Option<&'a [&'a str]>,
    /// The programs and addresses that documents may use; `None` leaves that to the workers.
    pub reach: Option<&'a Reach>,
    /// True if references to missing things are only a warning: calls of them fail (OAS-A17).
    pub open: bool,
}

/// The check that a worker makes of the addresses in documents, with the settings of this server. It resolves no names.
pub trait AddressCheck: fmt::Debug + Send + Sync {
    /// Checks the endpoint of a tool, with its credential.
    ///
    /// # Errors
    /// The reason why a worker with these settings does not call it.
    fn check_tool(&self, capability: &Capability, endpoint: &Endpoint) -> Result<(), String>;

    /// Checks the address of a server or a remote agent.
    ///
    /// # Errors
    /// The reason why a worker with these settings does not call it.
    fn check_address(&self, address: &str) -> Result<(), String>;
}

/// The programs and addresses that documents may use on this server.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The check of other addresses; without one they are not checked.
    pub addresses: Option<Arc<dyn AddressCheck>>,
    /// The programs that it may start as MCP servers.
    pub commands: agent_spec::AllowedCommands,
    /// True if it may name loopback and private addresses.
    pub private: bool,
}

impl Names<'_> {
    /// Returns true if a tool of this name may exist: in the registry, or at an MCP server, which only a
    /// worker can ask. The server's name may be the configured one, or its form in capability names.
    fn may_have_tool(&self, name: &str) -> bool {
        self.tools.contains(&name)
            || name.split_once('.').is_some_and(|(server, tool)| {
                let is_it = |known: &&str| *known == server || capability_name(known) == server;
                self.servers.iter().any(is_it) && !tool.is_empty()
            })
    }
}

/// Returns the name of a document's agent, if rules for tools name agents: then the tools of the document depend on it.
/// `None` for a document that cannot be read.
#[must_use]
pub fn name_for(source: &str, rules: &ToolRuleBook) -> Option<String> {
    if !rules.names_agents() {
        return None;
    }
    read(source, None).ok().map(|(agent, _)| agent.name)
}

/// Words that mean persons where a document names a reviewer.
const PERSONS: [&str; 5] = ["user", "owner", "operator", "manager", "anonymous"];

/// Returns the problem of an agent whose name means a person. A reader of a review could not distinguish the two.
#[must_use]
pub fn reserved(agent: &str, reviewers: Option<&[String]>) -> Option<Problem> {
    let is_person =
        PERSONS.contains(&agent) || reviewers.is_some_and(|names| names.iter().any(|name| name == agent));
    let message =
        format!("the name `{agent}` is reserved for a person who reviews; give the agent another one");
    is_person.then_some(Problem { line: 0, column: 0, rule: "OAS-30", severity: Severity::Error, message })
}

/// Reads one document. `kind` and `apiVersion` determine its format. Without `names` only the form of
/// references is checked, as in `agent lint` without a server.
///
/// # Errors
/// Every problem found, in document order, when at least one of them is an error. A definition is returned
/// with its warnings.
pub fn read(
    source: &str,
    names: Option<&Names<'_>>,
) -> Result<(AgentDefinition, Vec<Problem>), Vec<Problem>> {
    let mut problems = Problems::default();
    if agent_spec::is_agent_spec(source) {
        return agent_spec::agent(source, &agent_spec::Registry::default(), names);
    }
    let agent = tree::parse(source, &mut problems).and_then(|root| {
        if let Err(why) = Allowance::default().take(&root.to_json()) {
            problems.error(root.at, "patterns", why);
            return None;
        }
        match format_of(&root, &mut problems)? {
            Format::OpenAgentSpec => Some(openagentspec::read(&root, names, &mut problems)),
            Format::Ossa => Some(ossa::read(&root, names, &mut problems)),
            Format::AgentSpec => None,
        }
    });
    let failed = problems.any_error();
    match agent {
        Some(agent) if !failed => Ok((agent, problems.in_order())),
        _ => Err(problems.in_order()),
    }
}

/// Returns the format of a document, without checking the rest of it.
///
/// # Errors
/// The problem when the document is not YAML or belongs to no format.
pub fn detect(source: &str) -> Result<Format, Vec<Problem>> {
    let mut problems = Problems::default();
    if agent_spec::is_agent_spec(source) {
        return Ok(Format::AgentSpec);
    }
    let format = tree::parse(source, &mut problems).and_then(|root| format_of(&root, &mut problems));
    format.ok_or_else(|| problems.in_order())
}

fn format_of(root: &Node, problems: &mut Problems) -> Option<Format> {
    let kind = root.get("kind").and_then(Node::text);
    match (kind, root.get("apiVersion")) {
        (Some(kind), _) if kind.starts_with("openagentspec:") => Some(Format::OpenAgentSpec),
        (_, Some(_)) => Some(Format::Ossa),
        (Some("Agent"), None) => {
            let message = "`apiVersion` is missing: a manifest of OSSA says `apiVersion: ossa/v0.2.9` beside `kind: Agent`, and an \
                           OpenAgentSpec document `kind: \"openagentspec:v1/agent\"`";
            problems.error(root.at, "OSSA-apiVersion", message);
            None
        }
        // Other keys identify an OpenAgentSpec document with a bad or missing `kind`.
        _ if ["intent", "owner", "capabilities"].iter().any(|key| root.get(key).is_some()) => {
            Some(Format::OpenAgentSpec)
        }
        _ => {
            let at = root.get("kind").map_or(root.at, |kind| kind.at);
            let message = "the format is unknown: an OpenAgentSpec document says `kind: \"openagentspec:v1/agent\"`, \
                           an OSSA manifest `apiVersion: ossa/v0.2.9` and `kind: Agent`";
            problems.error(at, "OAS-16", message);
            None
        }
    }
}

#[cfg(test)]
mod tests;
