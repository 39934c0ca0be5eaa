//! Flows: nodes, and the edges between them.

use super::{AgenticComponent, Head, Node, NodeKind};
use crate::agent_spec::property::Property;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A graph of nodes. A node is known by its position in `nodes`.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Id, name and description.
    pub head: Head,
    /// Those of the start node.
    pub inputs: Vec<Property>,
    /// Its outputs; one that the end node lacks takes its default from here.
    pub outputs: Vec<Property>,
    /// The position of the node that runs first.
    pub start_node: usize,
    /// The nodes.
    pub nodes: Vec<Arc<Node>>,
    /// The edges from node to node.
    pub control_flow_connections: Vec<ControlFlowEdge>,
    /// The edges from outputs to inputs.
    pub data_flow_connections: DataFlow,
}

impl Flow {
    /// Returns the flow that runs an agent and nothing else, so that an agent is executed as flows are.
    pub(in crate::agent_spec) fn around(component: AgenticComponent) -> Self {
        let (inputs, outputs) = component.signature();
        let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
        let head = component.head().clone();
        let node = |name: &str, inputs: &[Property], outputs: &[Property], kind| {
            let (id, name) = (format!("{}.{name}", head.id), name.to_owned());
            let branches = vec!["next".to_owned()];
            let head = Head { id, name, description: None, metadata: Value::Null };
            Arc::new(Node { head, inputs: inputs.to_vec(), outputs: outputs.to_vec(), branches, kind })
        };
        let end = NodeKind::EndNode { branch_name: "next".to_owned() };
        let nodes = vec![
            node("start", &inputs, &inputs, NodeKind::StartNode),
            node(&head.name, &inputs, &outputs, NodeKind::AgentNode(component)),
            node("end", &outputs, &outputs, end),
        ];
        let edge =
            |from_node, to_node| ControlFlowEdge { from_node, from_branch: "next".to_owned(), to_node };
        let data = |source_node, destination_node, of: &[Property]| -> Vec<DataFlowEdge> {
            let one = |property: &Property| DataFlowEdge {
                source_node,
                source_output: property.title.clone(),
                destination_node,
                destination_input: property.title.clone(),
            };
            of.iter().map(one).collect()
        };
        let mut data_flow = data(0, 1, &inputs);
        data_flow.extend(data(1, 2, &outputs));
        Self {
            start_node: 0,
            control_flow_connections: vec![edge(0, 1), edge(1, 2)],
            data_flow_connections: DataFlow::Edges(data_flow),
            head,
            inputs,
            outputs,
            nodes,
        }
    }

    /// Returns the inputs of a run from those that were given: cast, and with their defaults.
    ///
    /// # Errors
    /// A sentence that names the input: one is missing, surplus, or cannot be cast.
    pub fn start(&self, mut given: Map<String, Value>) -> Result<Map<String, Value>, String> {
        let mut inputs = Map::new();
        for input in &self.inputs {
            let value = input.value(given.remove(&input.title)).map_err(|why| format!("input {why}"))?;
            inputs.insert(input.title.clone(), value);
        }
        match given.keys().next() {
            Some(surplus) => Err(format!("the flow `{}` has no input `{surplus}`", self.head.name)),
            None => Ok(inputs),
        }
    }

    /// Returns the inputs of a run from what its caller sent. The caller sends a map of inputs, nothing for a flow
    /// that needs none, or one text for a flow with one input.
    ///
    /// # Errors
    /// As [`Flow::start`].
    pub fn start_of(&self, sent: Option<Value>) -> Result<Map<String, Value>, String> {
        match (sent.unwrap_or_default(), self.inputs.as_slice()) {
            (Value::Object(given), _) => self.start(given),
            (Value::Null, _) => self.start(Map::new()),
            (text @ Value::String(_), [only]) => self.start(Map::from_iter([(only.title.clone(), text)])),
            _ => Err(format!(
                "the inputs of the flow `{}` are sent as a map of names to values",
                self.head.name
            )),
        }
    }

    /// Returns the position of the node that follows a branch of a node; `None` where the flow ends without an end node.
    #[must_use]
    pub fn next(&self, from: usize, branch: &str) -> Option<usize> {
        let is_it = |edge: &&ControlFlowEdge| edge.from_node == from && edge.from_branch == branch;
        self.control_flow_connections.iter().find(is_it).map(|edge| edge.to_node)
    }

    /// Returns the inputs that an output of a node fills, as positions of nodes and titles.
    #[must_use]
    pub fn filled_by<'a>(&'a self, source: usize, output: &'a str) -> Vec<(usize, &'a str)> {
        match &self.data_flow_connections {
            DataFlow::Edges(edges) => edges
                .iter()
                .filter(|edge| edge.source_node == source && edge.source_output == output)
                .map(|edge| (edge.destination_node, edge.destination_input.as_str()))
                .collect(),
            DataFlow::ByName => {
                let takes = |node: &&Arc<Node>| node.inputs.iter().any(|input| input.title == output);
                let nodes = self.nodes.iter().enumerate();
                nodes.filter(|(_, node)| takes(node)).map(|(at, _)| (at, output)).collect()
            }
        }
    }
}

/// The node that follows a branch of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlFlowEdge {
    /// The position of the node that ran.
    pub from_node: usize,
    /// The branch that it took; `next` unless the document says another.
    pub from_branch: String,
    /// The position of the node that runs next.
    pub to_node: usize,
}

/// The way in which values reach inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DataFlow {
    /// Every output fills every input of its name.
    ByName,
    /// Along edges only; without any, inputs have their defaults.
    Edges(Vec<DataFlowEdge>),
}

/// An output and an input that it fills.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFlowEdge {
    /// The position of the node with the output.
    pub source_node: usize,
    /// The title of the output.
    pub source_output: String,
    /// The position of the node with the input.
    pub destination_node: usize,
    /// The title of the input.
    pub destination_input: String,
}
