//! A run of a flow by this worker: where it is, and who works there.

use super::machine::{Branch, Machine, Values};
use super::team::{Step, Team};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::message::RequestedCall;
use turnstone_specs::agent_spec::model::{LlmConfig, Node};

/// A run of a flow by this worker.
pub struct FlowRun {
    /// The agent that the flow is.
    pub root: Arc<AgentDefinition>,
    /// The state of the run.
    pub machine: Machine,
    /// The node of the current turn, unless agents run it.
    pub node: Option<NodeTurn>,
    /// The agents of the node, when it is one of agents.
    pub crew: Option<Crew>,
    /// The steps that they took before this worker claimed the job.
    pub steps: Vec<Step>,
}

/// The node that the current turn runs.
pub struct NodeTurn {
    /// The node.
    pub node: Arc<Node>,
    /// Its inputs.
    pub inputs: Values,
    /// The flows that run as jobs of their own, if it is a parallel node.
    pub branches: Option<Arc<[Branch]>>,
}

/// The agents of the node that runs.
pub struct Crew {
    /// The node.
    pub node: Arc<Node>,
    /// Its inputs.
    pub inputs: Values,
    /// The agents and their conversations.
    pub team: Team,
    /// The conversation of the flow that the node is in; `None` is the one with the user.
    pub base: Option<String>,
    /// The model of the summary that is being made.
    pub summarizer: Option<Arc<LlmConfig>>,
}

/// The result of INFER for a node: the text of its model, or the call that EXEC makes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct NodeAnswer {
    /// The text of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<RequestedCall>,
    /// Why no model answered, when a `CatchExceptionNode` takes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl NodeAnswer {
    /// Returns the plan to make this call.
    pub fn of_call(call: RequestedCall) -> Self {
        Self { call: Some(call), ..Self::default() }
    }
}

impl FlowRun {
    /// Returns the name of the node that the turn runs, with the nodes around it and the agent whose turn it is.
    #[must_use]
    pub fn place(&self) -> String {
        let path = self.machine.path();
        match self.crew.as_ref().map(|crew| &crew.team.who().head().name) {
            Some(agent) if !path.ends_with(agent.as_str()) => format!("{path} > {agent}"),
            _ => path,
        }
    }
}
