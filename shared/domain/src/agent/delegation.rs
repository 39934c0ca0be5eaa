//! Delegation: a capability that is another agent (OpenAgentSpec, OSSA §5).

use super::{AgentDefinition, OutputContract};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{HashSet, VecDeque};
use utoipa::ToSchema;

/// The number of times that a failed delegate is replaced by a new one, when its delegation says `retry`.
pub const RETRIES: usize = 1;

/// The kind of thing that a capability calls.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A tool; where the worker has no tool of this name, the agent that is registered under it (OAS-09, OAS-12).
    #[default]
    Named,
    /// An agent, even if a tool has the same name (OAS-13).
    Agent(Delegate),
    /// An agent on another server (OAS-11).
    Remote {
        /// The address of its definition and its engagements.
        url: String,
    },
}

/// An agent that works for another one, and on which terms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delegate {
    /// The registered agent's name.
    pub agent: String,
    /// The order in which parent and delegate continue.
    #[serde(default)]
    pub mode: DelegationMode,
    /// The context that the delegate receives beside its input.
    #[serde(default)]
    pub context: ContextTransfer,
    /// Overrides for single parts of that context.
    #[serde(default, skip_serializing_if = "Propagation::is_default")]
    pub propagation: Propagation,
    /// The context that the agent's author adds (OSSA `custom_context`).
    #[serde(default)]
    pub custom_context: Map<String, Value>,
    /// The longest it may take, parked times included, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<i64>,
    /// The reaction to a failure of the delegate.
    #[serde(default)]
    pub on_failure: OnFailure,
}

impl Delegate {
    /// Returns a delegate on the terms of OpenAgentSpec, which defines none: its outcome is a tool's outcome.
    #[must_use]
    pub fn named(agent: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            mode: DelegationMode::default(),
            context: ContextTransfer::default(),
            propagation: Propagation::default(),
            custom_context: Map::new(),
            timeout_ms: None,
            on_failure: OnFailure::default(),
        }
    }

    /// Returns true if the delegate receives the parent's session id.
    #[must_use]
    pub fn shares_session(&self) -> bool {
        self.propagation.session_id.unwrap_or(true)
    }

    /// Returns true if the delegate receives the conversation so far.
    #[must_use]
    pub fn shares_history(&self) -> bool {
        self.propagation.history.unwrap_or(self.context == ContextTransfer::Full)
    }

    /// Returns true if the delegate receives the parent's state.
    #[must_use]
    pub fn shares_state(&self) -> bool {
        self.propagation.state.unwrap_or(self.context == ContextTransfer::Full)
    }
}

/// OSSA `context_propagation`: the parts of the parent's context that a delegate receives. An unset part follows
/// [`ContextTransfer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Propagation {
    /// `include_session_id`.
    pub session_id: Option<bool>,
    /// `include_history`.
    pub history: Option<bool>,
    /// `include_state`.
    pub state: Option<bool>,
}

impl Propagation {
    /// Returns true if every part is unset.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The order in which parent and delegate continue (OSSA §5, Delegation Patterns).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DelegationMode {
    /// The parent waits and continues with the result.
    #[default]
    Supervisor,
    /// As supervised delegation, but all such delegates of a turn work at the same time.
    Parallel,
    /// The delegate's answer is the answer of the parent, which takes no further turn.
    Handoff,
}

impl DelegationMode {
    /// Returns the word as in documents and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Parallel => "parallel",
            Self::Handoff => "handoff",
        }
    }

    /// Reads [`DelegationMode::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Supervisor, Self::Parallel, Self::Handoff].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// The context that a delegate receives beside its input (`spec.collaboration.handoffs[].context_transfer`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContextTransfer {
    /// The session's id.
    Minimal,
    /// That, and the custom context.
    #[default]
    Partial,
    /// That, the conversation so far, and the state.
    Full,
}

impl ContextTransfer {
    /// Reads the word of a document.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "minimal" => Some(Self::Minimal),
            "partial" => Some(Self::Partial),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}

/// The reaction to a failure of a delegate (OSSA §5 `on_failure`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The parent's model receives the failure, as it does when a tool fails.
    #[default]
    Report,
    /// A new delegate is tried, [`RETRIES`] times; after that the model receives the failure.
    Retry,
    /// Other agents are called instead, one after the other; if all of them fail, the model receives the failure.
    Fallback {
        /// Their names, in their order.
        agents: Vec<String>,
    },
    /// A review asks if a new delegate is to be tried; a rejection ends the job. The model receives the failure where the
    /// agent has no contact, and after the new delegate failed.
    Escalate,
}

/// The state of a delegation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DelegationState {
    /// It works.
    Open,
    /// It completed.
    Success,
    /// It failed, or was cancelled.
    Error,
    /// It took longer than it may.
    Timeout,
}

impl DelegationState {
    /// Returns the word as on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Success => "success",
            Self::Error => "error",
            Self::Timeout => "timeout",
        }
    }

    /// Reads [`DelegationState::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Success, Self::Error, Self::Timeout]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// Returns the agents that an agent may call, if no tool has their names.
fn called_agents(agent: &AgentDefinition) -> Vec<String> {
    agent.capabilities.iter().filter_map(|c| c.delegate(false)).map(|delegate| delegate.agent).collect()
}

/// Returns the names of an agent's reviewers that are agents: they have a prefix, which distinguishes them from users.
fn reviewers(agent: &AgentDefinition) -> Vec<String> {
    let both = |c: &super::Capability| {
        [c.input_restriction.require_review.clone(), c.output_restriction.require_review.clone()]
    };
    let words = agent.capabilities.iter().flat_map(both).flatten();
    words.filter_map(|word| word.strip_prefix("oagent://").map(str::to_owned)).collect()
}

/// Returns the agents that name this one as a capability or as a reviewer, in their order; it may name itself. Tools
/// are not known here, so every such name counts as the agent's.
#[must_use]
pub fn named_by(name: &str, agents: &[AgentDefinition]) -> Vec<String> {
    let others = agents.iter().filter(|agent| agent.name != name);
    let naming = others
        .filter(|agent| [called_agents(agent), reviewers(agent)].concat().iter().any(|one| one == name));
    naming.map(|agent| agent.name.clone()).collect()
}

/// Returns the shortest cycle of calls or reviews that leads an agent back to itself through others (OAS-A18). Its own
/// name comes first and last; `None` when there is no such cycle. Only names are compared: tools are not known here.
#[must_use]
pub fn circle(agent: &AgentDefinition, others: &[AgentDefinition]) -> Option<Vec<String>> {
    let named = |agent: &AgentDefinition| [called_agents(agent), reviewers(agent)].concat();
    let mut ways: VecDeque<Vec<String>> =
        named(agent).into_iter().filter(|name| *name != agent.name).map(|name| vec![name]).collect();
    let mut seen = HashSet::new();
    while let Some(way) = ways.pop_front() {
        let Some(last) = way.last().filter(|name| seen.insert((*name).clone())) else { continue };
        let Some(other) = others.iter().find(|other| other.name == *last) else { continue };
        for name in named(other) {
            if name == agent.name {
                let own = || std::iter::once(agent.name.clone());
                return Some(own().chain(way).chain(own()).collect());
            }
            ways.push_back([way.as_slice(), &[name]].concat());
        }
    }
    None
}

impl OutputContract {
    /// Returns true if it demands no form.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Capability;

    fn agent(name: &str, asks: &[&str]) -> AgentDefinition {
        let capabilities = asks.iter().map(|name| Capability::named(*name)).collect();
        AgentDefinition { name: name.to_owned(), capabilities, ..AgentDefinition::default() }
    }

    #[test]
    fn references_to_an_agent_are_found_by_capability_and_reviewer() {
        let mut careful = agent("careful", &["tool"]);
        careful.capabilities[0].output_restriction.require_review = Some("oagent://judge".to_owned());
        let all = [agent("judge", &["judge"]), agent("boss", &["judge", "tool"]), careful];
        assert_eq!(named_by("judge", &all), ["boss", "careful"]);
        assert_eq!(named_by("boss", &all), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_found_by_its_shortest_way() {
        let others =
            [agent("b", &["c", "d"]), agent("c", &["b", "e"]), agent("d", &["tool"]), agent("e", &["a"])];
        let way = circle(&agent("a", &["d", "b"]), &others).unwrap();
        assert_eq!(way, ["a", "b", "c", "e", "a"]);
        assert_eq!(circle(&agent("a", &["d", "nobody"]), &others), None);
        assert_eq!(circle(&agent("a", &["a"]), &others), None, "the reader of documents says that");
        let mut careful = agent("judge", &["tool"]);
        careful.capabilities[0].input_restriction.require_review = Some("oagent://a".to_owned());
        let mut a = agent("a", &["tool"]);
        a.capabilities[0].output_restriction.require_review = Some("oagent://judge".to_owned());
        assert_eq!(circle(&a, &[careful]).unwrap(), ["a", "judge", "a"], "reviewers ask as well");
    }

    #[test]
    fn definitions_of_older_versions_have_tools_only() {
        let mut old = serde_json::to_value(agent("a", &["x"])).unwrap();
        old["capabilities"][0].as_object_mut().unwrap().remove("target");
        let read: AgentDefinition = serde_json::from_value(old).unwrap();
        assert_eq!(read.capabilities[0].delegate(true), None);
    }
}
