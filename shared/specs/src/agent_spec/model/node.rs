//! The nodes of flows.

use super::{AgenticComponent, Flow, Head, LlmConfig, Request, Tool};
use crate::agent_spec::property::Property;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node of a flow.
#[derive(Clone, Debug)]
pub struct Node {
    /// Id, name and description.
    pub head: Head,
    /// Its inputs.
    pub inputs: Vec<Property>,
    /// Its outputs.
    pub outputs: Vec<Property>,
    /// The branches that it may take; none for an end node.
    pub branches: Vec<String>,
    /// Its work.
    pub kind: NodeKind,
}

/// The work of a node.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Passes the inputs of the flow on.
    StartNode,
    /// Ends the flow with its inputs as outputs.
    EndNode {
        /// The branch that the flow takes in a flow around it.
        branch_name: String,
    },
    /// Asks a model once.
    LlmNode {
        /// The model.
        llm_config: Arc<LlmConfig>,
        /// The message, a template over the inputs.
        prompt_template: String,
    },
    /// Calls a tool.
    ToolNode(Arc<Tool>),
    /// Runs an agent in the conversation of the flow; a flow, in one of its own.
    AgentNode(AgenticComponent),
    /// Runs a flow in place.
    FlowNode(Arc<Flow>),
    /// Takes the branch that its input is mapped to, or `default`.
    BranchingNode {
        /// Values and branches.
        mapping: BTreeMap<String, String>,
    },
    /// Runs a flow for each item of lists, one after the other.
    MapNode {
        /// The flow.
        subflow: Arc<Flow>,
        /// The outputs of the flow that are collected, each with its reducer.
        reducers: Vec<(String, Reducer)>,
    },
    /// Runs a flow for each item of lists, all at once.
    ParallelMapNode {
        /// The flow.
        subflow: Arc<Flow>,
        /// The outputs of the flow that are collected, each with its reducer.
        reducers: Vec<(String, Reducer)>,
    },
    /// Runs flows at once.
    ParallelFlowNode(Vec<Arc<Flow>>),
    /// Runs a flow, and takes a branch of its own when that fails.
    CatchExceptionNode(Arc<Flow>),
    /// Sends an HTTP request.
    ApiNode(Box<Request>),
    /// Asks the user.
    InputMessageNode {
        /// The message before the question, a template over the inputs.
        message: Option<String>,
    },
    /// Says something to the user.
    OutputMessageNode {
        /// The message, a template over the inputs.
        message: String,
    },
}

/// A function from the outputs of all iterations to one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reducer {
    /// A list of them.
    Append,
    /// Their sum.
    Sum,
    /// Their mean.
    Average,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}
