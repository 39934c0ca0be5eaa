//! Agents, and everything that can be talked to.

use super::{
    A2AAgent, Flow, Head, LlmConfig, MCPToolBox, ManagerWorkers, MessageTransform, OciAgent, Swarm, Tool,
};
use crate::agent_spec::property::Property;
use std::sync::Arc;

/// A component that takes part in a conversation.
#[derive(Clone, Debug)]
pub enum AgenticComponent {
    /// An agent.
    Agent(Arc<Agent>),
    /// An agent with more instructions and tools.
    SpecializedAgent(Arc<SpecializedAgent>),
    /// A flow.
    Flow(Arc<Flow>),
    /// Agents that call one another.
    Swarm(Arc<Swarm>),
    /// A manager and its workers.
    ManagerWorkers(Arc<ManagerWorkers>),
    /// A remote agent that speaks A2A.
    A2AAgent(Arc<A2AAgent>),
    /// A remote agent of Oracle's cloud.
    OciAgent(Arc<OciAgent>),
}

impl AgenticComponent {
    /// Returns its id, name and description.
    #[must_use]
    pub fn head(&self) -> &Head {
        match self {
            Self::Agent(agent) => &agent.head,
            Self::SpecializedAgent(agent) => &agent.head,
            Self::Flow(flow) => &flow.head,
            Self::Swarm(swarm) => &swarm.head,
            Self::ManagerWorkers(team) => &team.head,
            Self::A2AAgent(agent) => &agent.head,
            Self::OciAgent(agent) => &agent.head,
        }
    }

    /// Returns its inputs and outputs.
    #[must_use]
    pub fn signature(&self) -> (&[Property], &[Property]) {
        match self {
            Self::Agent(agent) => (&agent.inputs, &agent.outputs),
            Self::SpecializedAgent(agent) => (&agent.inputs, &agent.outputs),
            Self::Flow(flow) => (&flow.inputs, &flow.outputs),
            Self::Swarm(swarm) => (&swarm.inputs, &swarm.outputs),
            Self::ManagerWorkers(team) => (&team.inputs, &team.outputs),
            Self::A2AAgent(agent) => (&agent.inputs, &agent.outputs),
            Self::OciAgent(agent) => (&agent.inputs, &agent.outputs),
        }
    }
}

impl AgenticComponent {
    /// Returns the agent that it is, with the additions of a specialized one; `None` for everything else.
    #[must_use]
    pub fn as_agent(&self) -> Option<Arc<Agent>> {
        match self {
            Self::Agent(agent) => Some(Arc::clone(agent)),
            Self::SpecializedAgent(agent) => Some(Arc::new(agent.whole())),
            _ => None,
        }
    }
}

/// A model with instructions and tools.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Id, name and description.
    pub head: Head,
    /// The placeholders of the system prompt.
    pub inputs: Vec<Property>,
    /// The values that it yields before it ends; empty for a conversation without an end.
    pub outputs: Vec<Property>,
    /// The model.
    pub llm_config: Arc<LlmConfig>,
    /// The instructions, a template over the inputs.
    pub system_prompt: String,
    /// The tools.
    pub tools: Vec<Arc<Tool>>,
    /// Sources of more tools.
    pub toolboxes: Vec<Arc<MCPToolBox>>,
    /// Permits questions to the user.
    pub human_in_the_loop: bool,
    /// Transforms of the messages before each model call, in order.
    pub transforms: Vec<Arc<MessageTransform>>,
}

/// An agent and additions to it.
#[derive(Clone, Debug)]
pub struct SpecializedAgent {
    /// Id, name and description.
    pub head: Head,
    /// Those of the agent and of its specialization.
    pub inputs: Vec<Property>,
    /// Those of the agent.
    pub outputs: Vec<Property>,
    /// The agent.
    pub agent: Arc<Agent>,
    /// The additions to the agent.
    pub agent_specialization_parameters: AgentSpecializationParameters,
}

impl SpecializedAgent {
    /// Returns the agent with its additions: the instructions follow those of the agent after a blank line.
    fn whole(&self) -> Agent {
        let more = &self.agent_specialization_parameters;
        let prompts = [Some(&self.agent.system_prompt), more.additional_instructions.as_ref()];
        let prompts: Vec<&str> =
            prompts.into_iter().flatten().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let mut agent = Agent {
            head: self.head.clone(),
            inputs: self.inputs.clone(),
            system_prompt: prompts.join("\n\n"),
            human_in_the_loop: more.human_in_the_loop.unwrap_or(self.agent.human_in_the_loop),
            ..(*self.agent).clone()
        };
        agent.head.metadata = match self.head.metadata.as_object().is_some_and(|data| !data.is_empty()) {
            true => agent.head.metadata,
            false => self.agent.head.metadata.clone(),
        };
        agent.tools.extend(more.additional_tools.iter().cloned());
        agent
    }
}

/// The additions of a specialized agent to an agent.
#[derive(Clone, Debug)]
pub struct AgentSpecializationParameters {
    /// Instructions after those of the agent.
    pub additional_instructions: Option<String>,
    /// Tools besides those of the agent.
    pub additional_tools: Vec<Arc<Tool>>,
    /// Replaces the agent's, when given.
    pub human_in_the_loop: Option<bool>,
}
