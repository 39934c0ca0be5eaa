//! The delegates of an agent: the capabilities that are agents, and their current definitions.

use crate::model::ToolOffer;
use crate::policy::reviewer;
use crate::state::claimed::KnownDelegate;
use crate::state::{Claimed, Stop};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::delegation::{Delegate, OnFailure};
use turnstone_domain::agent::{AgentFormat, Capability};

/// Looks up the delegates, once per lease.
///
/// # Errors
/// [`Stop::Store`].
pub async fn look_up(claimed: &mut Claimed) -> Result<(), Stop> {
    if claimed.delegates.is_some() {
        return Ok(());
    }
    if claimed.agent.format == AgentFormat::AgentSpec {
        // Its agents are in its document.
        claimed.delegates = Some(Arc::default());
        return Ok(());
    }
    let toolbox = &claimed.deps.toolbox;
    let is_tool = |capability: &Capability| {
        let name = capability.name.as_str();
        toolbox.get(name).is_some()
            || toolbox.is_remote(name)
            || toolbox.of_server(name).is_some()
            || capability.origin.is_some()
    };
    let terms: Vec<(&Capability, Delegate)> = claimed
        .agent
        .capabilities
        .iter()
        .filter_map(|capability| Some((capability, capability.delegate(is_tool(capability))?)))
        .collect();
    let names: BTreeSet<String> = terms
        .iter()
        .flat_map(|(_, terms)| std::iter::once(&terms.agent).chain(fallback(terms)).cloned())
        .chain(reviewer::words(&claimed.agent).iter().map(|word| reviewer::agent_name(word).to_owned()))
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    let tenant = claimed.tenant();
    let found = match names.is_empty() {
        true => Vec::new(),
        false => claimed.deps.ledger.reads().agents(&names, Some(&tenant)).await?,
    };
    let found: BTreeMap<String, Arc<AgentDefinition>> =
        found.into_iter().map(|agent| (agent.name.clone(), Arc::new(agent))).collect();
    let mut delegates = BTreeMap::new();
    for (capability, terms) in terms {
        let Some(agent) = found.get(&terms.agent).cloned() else { continue };
        let fallback = fallback(&terms).iter().filter_map(|name| found.get(name).cloned()).collect();
        let offer = offer(capability, &agent);
        delegates.insert(capability.name.clone(), KnownDelegate { terms, agent, fallback, offer });
    }
    claimed.reviewers = reviewer::among(&claimed.agent, &found);
    claimed.delegates = Some(Arc::new(delegates));
    Ok(())
}

fn fallback(terms: &Delegate) -> &[String] {
    match &terms.on_failure {
        OnFailure::Fallback { agents } => agents,
        _ => &[],
    }
}

/// Returns an agent as a tool for the model; the capability's texts override the agent's.
fn offer(capability: &Capability, agent: &AgentDefinition) -> ToolOffer {
    ToolOffer {
        name: capability.name.clone(),
        description: capability.description.clone().unwrap_or_else(|| agent.description.clone()),
        input_schema: capability.input_schema.clone().unwrap_or_else(input_schema),
    }
}

fn input_schema() -> Value {
    json!({"type": "object", "required": ["input"],
           "properties": {"input": {"type": "string", "description": "What this agent is to do, in full sentences."}}})
}
