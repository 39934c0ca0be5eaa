//! The bounds of a fan-out: how many jobs one engagement may lead to, and how many agents one turn may call.

use super::AgentDefinition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The bounds for the delegations of one agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FanOut {
    /// The most jobs of a tree: the engagement that began it, and its delegates to any depth. Attempts of a job count
    /// once; the iterations of a flow count as jobs.
    pub max_jobs_per_tree: u32,
    /// The most agents that the model may call in one turn.
    pub max_children_per_turn: u32,
}

impl FanOut {
    /// The bounds of an agent for which no others are configured.
    pub const DEFAULT: Self = Self { max_jobs_per_tree: 1_000, max_children_per_turn: 32 };
}

impl Default for FanOut {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The bounds of one agent in the configuration; a bound that is left out is that of all agents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OwnFanOut {
    /// See [`FanOut::max_jobs_per_tree`].
    pub max_jobs_per_tree: Option<u32>,
    /// See [`FanOut::max_children_per_turn`].
    pub max_children_per_turn: Option<u32>,
}

/// The bounds that an operator configures. No document and no job can change them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FanOutRules {
    /// The bounds of agents without bounds of their own.
    pub all: FanOut,
    /// The bounds of registered agents, by their names.
    pub of: BTreeMap<String, OwnFanOut>,
}

impl FanOutRules {
    /// Returns the bounds for an agent. Own bounds belong to the agent that is registered under the name: the definition
    /// of a job and that of an imported engagement have none.
    #[must_use]
    pub fn of(&self, agent: &AgentDefinition) -> FanOut {
        let own = agent.known_name().and_then(|name| self.of.get(name)).copied().unwrap_or_default();
        FanOut {
            max_jobs_per_tree: own.max_jobs_per_tree.unwrap_or(self.all.max_jobs_per_tree),
            max_children_per_turn: own.max_children_per_turn.unwrap_or(self.all.max_children_per_turn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentFormat;

    #[test]
    fn own_bounds_belong_to_registered_agents_alone() {
        let own = OwnFanOut { max_jobs_per_tree: Some(5_000), ..OwnFanOut::default() };
        let rules = FanOutRules { of: BTreeMap::from([("lead".to_owned(), own)]), ..FanOutRules::default() };
        let named = |format| AgentDefinition { name: "lead".into(), format, ..AgentDefinition::default() };
        let registered = named(AgentFormat::OpenAgentSpec);
        assert_eq!(rules.of(&registered), FanOut { max_jobs_per_tree: 5_000, ..FanOut::DEFAULT });
        assert_eq!(rules.of(&named(AgentFormat::AdHoc)), FanOut::DEFAULT);
        assert_eq!(rules.of(&AgentDefinition { imported: true, ..registered }), FanOut::DEFAULT);
    }
}
