//! The rules of the configuration for the tools of a turn (`[tool_rules]`).

use crate::state::Claimed;
use crate::tool::Toolbox;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{AgentFormat, Capability, Reached, ToolCaller};

/// Returns the name of a capability's tool in the configuration. Tools that a document brings along have none.
fn registered(toolbox: &Toolbox, capability: &Capability) -> Option<String> {
    let name = capability.name.as_str();
    if toolbox.get(name).is_some() || toolbox.is_remote(name) {
        return Some(name.to_owned());
    }
    match capability.origin.as_ref().map(|origin| &origin.reached) {
        Some(Reached::Mcp { server: key }) => {
            let server = toolbox.server(key)?.name();
            let own = name.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('.'));
            Some(format!("{server}.{}", own.unwrap_or(name)))
        }
        Some(Reached::Http(_) | Reached::Unserved { .. }) => None,
        Some(Reached::Registry) | None => {
            let (server, tool) = toolbox.of_server(name)?;
            Some(format!("{}.{tool}", server.name()))
        }
    }
}

/// Returns true if the job's tenant and the turn's agent may call the capability's tool.
pub fn admits(claimed: &Claimed, capability: &Capability) -> bool {
    let rules = claimed.deps.toolbox.rules();
    if rules.is_empty() {
        return true;
    }
    let tool = registered(&claimed.deps.toolbox, capability);
    tool.is_none_or(|tool| is_admitted(claimed, &tool))
}

fn is_admitted(claimed: &Claimed, tool: &str) -> bool {
    let caller = ToolCaller { tenant: &claimed.tenant(), agent: claimed.agent.known_name() };
    claimed.deps.toolbox.rules().admits(tool, caller)
}

/// Returns true if the tool of a guardrail may be called for this turn.
///
/// # Errors
/// A sentence when rules restrict its calls: a guardrail runs by itself, and nothing would hold the restriction.
pub fn admits_guardrail(claimed: &Claimed, name: &str) -> Result<bool, String> {
    let toolbox = &claimed.deps.toolbox;
    if toolbox.rules().is_empty() {
        return Ok(true);
    }
    let Some(tool) = registered(toolbox, &Capability::named(name)) else { return Ok(true) };
    if !is_admitted(claimed, &tool) {
        return Ok(false);
    }
    match toolbox.rules().restricts(&tool) {
        true => Err(format!("[tool_rules] restrict its tool `{name}`, which no guardrail may call then")),
        false => Ok(true),
    }
}

/// Returns the capability with the restrictions of the configuration; `None` when there are none for its tool.
pub fn added(toolbox: &Toolbox, capability: &Capability) -> Option<Capability> {
    let rules = toolbox.rules();
    if rules.is_empty() {
        return None;
    }
    let tool = registered(toolbox, capability).filter(|tool| rules.restricts(tool))?;
    let mut capability = capability.clone();
    rules.add_to(&tool, &mut capability.input_restriction, &mut capability.output_restriction);
    Some(capability)
}

/// Returns true if an expression of this agent, or of the rules for its tools, reads the Engagement object.
pub fn reads_engagement(toolbox: &Toolbox, agent: &AgentDefinition) -> bool {
    let rules = toolbox.rules();
    if agent.reads_engagement() || rules.is_empty() || !rules.restricts_any() {
        return agent.reads_engagement();
    }
    // Agents of Agent Spec name their tools inside of their documents, and sets name none.
    agent.format == AgentFormat::AgentSpec
        || !agent.toolsets.is_empty()
        || agent.capabilities.iter().any(|own| added(toolbox, own).is_some())
}
