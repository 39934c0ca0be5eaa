//! Delegation: a capability that is another agent (OpenAgentSpec, OSSA §5).

use super::{AgentDefinition, OutputContract};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{HashSet, VecDeque};

/// How often a delegate that failed is replaced by a new one, when its delegation says `retry`.
pub const RETRIES: usize = 1;

/// What a capability stands for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A tool; where the worker has no tool of this name, the agent that is registered under it (OAS-09, OAS-12).
    #[default]
    Named,
    /// An agent, whatever tools there are (OAS-13).
    Agent(Delegate),
    /// An agent on another server (OAS-11).
    Remote {
        /// Where its definition is read and its engagements begin.
        url: String,
    },
}

/// An agent that works for another one, and on which terms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Delegate {
    /// The registered agent's name.
    pub agent: String,
    /// Who goes on while it works, and after it.
    #[serde(default)]
    pub mode: DelegationMode,
    /// What it is told beside its input.
    #[serde(default)]
    pub context: ContextTransfer,
    /// What is said of the parts of that one by one.
    #[serde(default, skip_serializing_if = "Propagation::is_default")]
    pub propagation: Propagation,
    /// What its author wants it to be told (OSSA `custom_context`).
    #[serde(default)]
    pub custom_context: Map<String, Value>,
    /// The longest it may take, parked times included, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<i64>,
    /// What happens when it fails.
    #[serde(default)]
    pub on_failure: OnFailure,
}

impl Delegate {
    /// A delegate on the terms of OpenAgentSpec, which says none: its outcome is a tool's outcome.
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

    /// Whether it is told the session of who asks.
    #[must_use]
    pub fn tells_session(&self) -> bool {
        self.propagation.session_id.unwrap_or(true)
    }

    /// Whether it is told the conversation so far.
    #[must_use]
    pub fn tells_history(&self) -> bool {
        self.propagation.history.unwrap_or(self.context == ContextTransfer::Full)
    }

    /// Whether it is told the state of who asks.
    #[must_use]
    pub fn tells_state(&self) -> bool {
        self.propagation.state.unwrap_or(self.context == ContextTransfer::Full)
    }
}

/// OSSA `context_propagation`: what a delegate is told of who asks it. What is not said follows [`ContextTransfer`].
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
    /// Whether it says nothing.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who goes on while a delegate works, and after it (OSSA §5, Delegation Patterns).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DelegationMode {
    /// The parent waits and goes on with the result.
    #[default]
    Supervisor,
    /// The same, and all such delegates of a turn work at the same time.
    Parallel,
    /// The delegate's answer is the answer of the parent, which takes no further turn.
    Handoff,
}

impl DelegationMode {
    /// The word as in documents and in the database.
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

/// What a delegate is told beside its input (`spec.collaboration.handoffs[].context_transfer`).
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

/// What happens when a delegate fails (OSSA §5 `on_failure`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The parent's model is told, as of a tool that failed.
    #[default]
    Report,
    /// A new one is tried, [`RETRIES`] times; then the model is told.
    Retry,
    /// Another agent is asked instead; if that fails too, the model is told.
    Fallback {
        /// The other agent's name.
        agent: String,
    },
    /// Somebody is asked whether a new one is to be tried; a no tells the model.
    Escalate,
}

/// Where a delegation stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
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
    /// The word as on the wire and in the database.
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

/// The agents that an agent asks, if no tool has their names.
fn asked(agent: &AgentDefinition) -> Vec<String> {
    agent.capabilities.iter().filter_map(|c| c.delegate(false)).map(|delegate| delegate.agent).collect()
}

/// The words by which an agent names its reviewers, without the prefix that tells agents from users.
fn reviewers(agent: &AgentDefinition) -> Vec<String> {
    let both = |c: &super::Capability| {
        [c.input_restriction.require_review.clone(), c.output_restriction.require_review.clone()]
    };
    let words = agent.capabilities.iter().flat_map(both).flatten();
    words.map(|word| word.strip_prefix("oagent://").unwrap_or(&word).to_owned()).collect()
}

/// The agents that name this one as a capability or as a reviewer, in their order; it may name itself. A tool of the same
/// name is not known here, so a name is taken for the agent's.
#[must_use]
pub fn named_by(name: &str, agents: &[AgentDefinition]) -> Vec<String> {
    let others = agents.iter().filter(|agent| agent.name != name);
    let naming =
        others.filter(|agent| [asked(agent), reviewers(agent)].concat().iter().any(|one| one == name));
    naming.map(|agent| agent.name.clone()).collect()
}

/// The shortest way on which an agent would come to ask itself through others, as capabilities or as reviewers, its own name first and last; `None` when
/// there is none, or it is shorter than that (OAS-A18). Only names are compared: whether a name means a tool is not known here.
#[must_use]
pub fn circle(agent: &AgentDefinition, others: &[AgentDefinition]) -> Option<Vec<String>> {
    let named = |agent: &AgentDefinition| [asked(agent), reviewers(agent)].concat();
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
    /// Whether it demands nothing.
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
    fn who_names_an_agent_is_known_by_capability_and_by_reviewer() {
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
        a.capabilities[0].output_restriction.require_review = Some("judge".to_owned());
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
