//! Builds the model from components that were read and checked.

use super::{
    A2AAgent, A2AConnectionConfig, Agent, AgentSpecializationParameters, AgenticComponent, Component,
    ControlFlowEdge, DataFlow, DataFlowEdge, Flow, Handoff, Head, MCPToolBox, MCPToolSpec, ManagerWorkers,
    Node, NodeKind, OciAgent, Reducer, Request, RetryPolicy, SpecializedAgent, Swarm, Tool, ToolFilter,
    ToolKind,
};
use crate::agent_spec::component::{Component as Read, Filter, Held};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Builds each component once, so that the model shares what the document shares.
#[derive(Default)]
pub(in crate::agent_spec) struct Builder {
    agentic: HashMap<String, AgenticComponent>,
    nodes: HashMap<String, Arc<Node>>,
    tools: HashMap<String, Arc<Tool>>,
    toolboxes: HashMap<String, Arc<MCPToolBox>>,
    pub(super) llms: HashMap<String, Arc<super::LlmConfig>>,
    pub(super) transports: HashMap<String, Arc<super::ClientTransport>>,
    pub(super) datastores: HashMap<String, Arc<super::Datastore>>,
}

impl Builder {
    /// Builds the component that a document is; `None` when a required part is missing, which its check reports.
    pub(in crate::agent_spec) fn root(&mut self, read: &Arc<Read>) -> Option<Component> {
        use crate::agent_spec::class::Family;
        let is = |family| read.class.is(family);
        Some(if is(Family::AgenticComponent) {
            Component::AgenticComponent(self.agentic(read)?)
        } else if is(Family::Node) {
            Component::Node(self.node(read)?)
        } else if is(Family::Tool) {
            Component::Tool(self.tool(read)?)
        } else if is(Family::ToolBox) {
            Component::ToolBox(self.toolbox(read)?)
        } else if is(Family::LlmConfig) {
            Component::LlmConfig(self.llm(read)?)
        } else if is(Family::ClientTransport) {
            Component::ClientTransport(self.transport(read)?)
        } else if is(Family::Datastore) {
            Component::Datastore(self.datastore(read)?)
        } else if is(Family::MessageTransform) {
            Component::MessageTransform(Arc::new(self.transform(read)?))
        } else {
            Component::Part(read.class.name)
        })
    }

    fn agentic(&mut self, read: &Arc<Read>) -> Option<AgenticComponent> {
        if let Some(known) = self.agentic.get(&read.id) {
            return Some(known.clone());
        }
        let built = match read.class.name {
            "Agent" => AgenticComponent::Agent(Arc::new(self.agent(read)?)),
            "SpecializedAgent" => AgenticComponent::SpecializedAgent(Arc::new(self.specialized(read)?)),
            "Flow" => AgenticComponent::Flow(Arc::new(self.flow(read)?)),
            "Swarm" => AgenticComponent::Swarm(Arc::new(self.swarm(read)?)),
            "ManagerWorkers" => AgenticComponent::ManagerWorkers(Arc::new(self.team(read)?)),
            "A2AAgent" => AgenticComponent::A2AAgent(Arc::new(a2a(read)?)),
            "OciAgent" => AgenticComponent::OciAgent(Arc::new(OciAgent {
                head: Head::of(read),
                inputs: read.inputs.clone(),
                outputs: read.outputs.clone(),
                agent_endpoint_id: read.text("agent_endpoint_id"),
                client_config: super::llm::oci_client(read.one("client_config")?)?,
                retry_policy: retries(read),
            })),
            _ => return None,
        };
        self.agentic.insert(read.id.clone(), built.clone());
        Some(built)
    }

    fn agent(&mut self, read: &Read) -> Option<Agent> {
        Some(Agent {
            head: Head::of(read),
            inputs: read.inputs.clone(),
            outputs: read.outputs.clone(),
            llm_config: self.llm(read.one("llm_config")?)?,
            system_prompt: read.text("system_prompt"),
            tools: self.tools(read.many("tools"))?,
            toolboxes: read.many("toolboxes").iter().map(|one| self.toolbox(one)).collect::<Option<_>>()?,
            human_in_the_loop: read.flag("human_in_the_loop"),
            transforms: read
                .many("transforms")
                .iter()
                .map(|one| self.transform(one).map(Arc::new))
                .collect::<Option<_>>()?,
        })
    }

    fn specialized(&mut self, read: &Read) -> Option<SpecializedAgent> {
        let AgenticComponent::Agent(agent) = self.agentic(read.one("agent")?)? else { return None };
        let more = read.one("agent_specialization_parameters")?;
        Some(SpecializedAgent {
            head: Head::of(read),
            inputs: read.inputs.clone(),
            outputs: read.outputs.clone(),
            agent,
            agent_specialization_parameters: AgentSpecializationParameters {
                additional_instructions: more.optional_text("additional_instructions"),
                additional_tools: self.tools(more.many("additional_tools"))?,
                human_in_the_loop: more.value("human_in_the_loop").as_bool(),
            },
        })
    }

    fn swarm(&mut self, read: &Read) -> Option<Swarm> {
        let mut relationships = Vec::new();
        for (from, to) in read.pairs("relationships") {
            relationships.push((self.agentic(from)?, self.agentic(to)?));
        }
        let handoff = match read.value("handoff") {
            Value::Bool(false) => Handoff::Never,
            Value::String(word) if word == "never" => Handoff::Never,
            Value::String(word) if word == "always" => Handoff::Always,
            _ => Handoff::Optional,
        };
        Some(Swarm {
            head: Head::of(read),
            inputs: read.inputs.clone(),
            outputs: read.outputs.clone(),
            first_agent: self.agentic(read.one("first_agent")?)?,
            relationships,
            handoff,
        })
    }

    fn team(&mut self, read: &Read) -> Option<ManagerWorkers> {
        Some(ManagerWorkers {
            head: Head::of(read),
            inputs: read.inputs.clone(),
            outputs: read.outputs.clone(),
            group_manager: self.agentic(read.one("group_manager")?)?,
            workers: read.many("workers").iter().map(|one| self.agentic(one)).collect::<Option<_>>()?,
        })
    }

    fn flow(&mut self, read: &Read) -> Option<Flow> {
        let (mut nodes, mut positions) = (Vec::new(), HashMap::new());
        for node in read.many("nodes") {
            if !positions.contains_key(node.id.as_str()) {
                positions.insert(node.id.as_str(), nodes.len());
                nodes.push(self.node(node)?);
            }
        }
        let position = |edge: &Arc<Read>, field: &str| positions.get(edge.one(field)?.id.as_str()).copied();
        let control = |edge: &Arc<Read>| {
            Some(ControlFlowEdge {
                from_node: position(edge, "from_node")?,
                from_branch: edge.optional_text("from_branch").unwrap_or_else(|| "next".to_owned()),
                to_node: position(edge, "to_node")?,
            })
        };
        let data = |edge: &Arc<Read>| {
            Some(DataFlowEdge {
                source_node: position(edge, "source_node")?,
                source_output: edge.text("source_output"),
                destination_node: position(edge, "destination_node")?,
                destination_input: edge.text("destination_input"),
            })
        };
        let data_flow_connections = match read.held.get("data_flow_connections") {
            Some(Held::Many(edges)) => DataFlow::Edges(edges.iter().map(data).collect::<Option<_>>()?),
            _ => DataFlow::ByName,
        };
        Some(Flow {
            head: Head::of(read),
            inputs: read.inputs.clone(),
            outputs: read.outputs.clone(),
            start_node: *positions.get(read.one("start_node")?.id.as_str())?,
            nodes,
            control_flow_connections: read
                .many("control_flow_connections")
                .iter()
                .map(control)
                .collect::<Option<_>>()?,
            data_flow_connections,
        })
    }

    fn subflow(&mut self, read: &Arc<Read>) -> Option<Arc<Flow>> {
        match self.agentic(read)? {
            AgenticComponent::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    fn node(&mut self, read: &Arc<Read>) -> Option<Arc<Node>> {
        if let Some(known) = self.nodes.get(&read.id) {
            return Some(known.clone());
        }
        let built = Arc::new(Node {
            head: Head::of(read),
            inputs: read.inputs.clone(),
            outputs: read.outputs.clone(),
            branches: read.branches.clone(),
            kind: self.node_kind(read)?,
        });
        self.nodes.insert(read.id.clone(), built.clone());
        Some(built)
    }

    fn node_kind(&mut self, read: &Read) -> Option<NodeKind> {
        Some(match read.class.name {
            "StartNode" => NodeKind::StartNode,
            "EndNode" => NodeKind::EndNode { branch_name: read.text("branch_name") },
            "LlmNode" => NodeKind::LlmNode {
                llm_config: self.llm(read.one("llm_config")?)?,
                prompt_template: read.text("prompt_template"),
            },
            "ToolNode" => NodeKind::ToolNode(self.tool(read.one("tool")?)?),
            "AgentNode" => NodeKind::AgentNode(self.agentic(read.one("agent")?)?),
            "FlowNode" => NodeKind::FlowNode(self.subflow(read.one("subflow")?)?),
            "BranchingNode" => NodeKind::BranchingNode { mapping: texts(&read.value("mapping")) },
            "MapNode" => {
                NodeKind::MapNode { subflow: self.subflow(read.one("subflow")?)?, reducers: reducers(read)? }
            }
            "ParallelMapNode" => NodeKind::ParallelMapNode {
                subflow: self.subflow(read.one("subflow")?)?,
                reducers: reducers(read)?,
            },
            "ParallelFlowNode" => NodeKind::ParallelFlowNode(
                read.many("subflows").iter().map(|flow| self.subflow(flow)).collect::<Option<_>>()?,
            ),
            "CatchExceptionNode" => NodeKind::CatchExceptionNode(self.subflow(read.one("subflow")?)?),
            "ApiNode" => NodeKind::ApiNode(Box::new(request(read))),
            "InputMessageNode" => NodeKind::InputMessageNode { message: read.optional_text("message") },
            "OutputMessageNode" => NodeKind::OutputMessageNode { message: read.text("message") },
            _ => return None,
        })
    }

    fn tools(&mut self, tools: &[Arc<Read>]) -> Option<Vec<Arc<Tool>>> {
        tools.iter().map(|tool| self.tool(tool)).collect()
    }

    fn tool(&mut self, read: &Arc<Read>) -> Option<Arc<Tool>> {
        if let Some(known) = self.tools.get(&read.id) {
            return Some(known.clone());
        }
        let kind = match read.class.name {
            "ServerTool" => ToolKind::ServerTool,
            "ClientTool" => ToolKind::ClientTool,
            "RemoteTool" => ToolKind::RemoteTool(Box::new(request(read))),
            "MCPTool" => ToolKind::MCPTool {
                client_transport: self.transport(read.one("client_transport")?)?,
                retry_policy: retries(read),
            },
            "BuiltinTool" => ToolKind::BuiltinTool {
                tool_type: read.text("tool_type"),
                configuration: Some(read.value("configuration")).filter(|value| !value.is_null()),
                executor_name: list(&read.value("executor_name")),
                tool_version: read.optional_text("tool_version"),
            },
            _ => return None,
        };
        let built = Arc::new(Tool {
            head: Head::of(read),
            inputs: read.inputs.clone(),
            outputs: read.outputs.clone(),
            requires_confirmation: read.flag("requires_confirmation"),
            kind,
        });
        self.tools.insert(read.id.clone(), built.clone());
        Some(built)
    }

    fn toolbox(&mut self, read: &Arc<Read>) -> Option<Arc<MCPToolBox>> {
        if let Some(known) = self.toolboxes.get(&read.id) {
            return Some(known.clone());
        }
        let filter = |entry: &Filter| match entry {
            Filter::Name(name) => ToolFilter::Name(name.clone()),
            Filter::Spec(spec) => ToolFilter::Spec(MCPToolSpec {
                head: Head::of(spec),
                inputs: spec.declared.inputs.then(|| spec.inputs.clone()),
                outputs: spec.declared.outputs.then(|| spec.outputs.clone()),
                requires_confirmation: spec.flag("requires_confirmation"),
            }),
        };
        let built = Arc::new(MCPToolBox {
            head: Head::of(read),
            requires_confirmation: read.flag("requires_confirmation"),
            client_transport: self.transport(read.one("client_transport")?)?,
            retry_policy: retries(read),
            tool_filter: read.filter("tool_filter").map(|entries| entries.iter().map(filter).collect()),
        });
        self.toolboxes.insert(read.id.clone(), built.clone());
        Some(built)
    }
}

fn a2a(read: &Read) -> Option<A2AAgent> {
    let connection = read.one("connection_config")?;
    let session = read.value("session_parameters");
    let seconds = |key: &str, otherwise: f64| session.get(key).and_then(Value::as_f64).unwrap_or(otherwise);
    Some(A2AAgent {
        head: Head::of(read),
        inputs: read.inputs.clone(),
        outputs: read.outputs.clone(),
        agent_url: read.text("agent_url"),
        connection_config: A2AConnectionConfig {
            timeout: connection.value("timeout").as_f64()?,
            headers: texts(&connection.value("headers")),
            verify: connection.flag("verify"),
            key_file: connection.optional_text("key_file"),
            cert_file: connection.optional_text("cert_file"),
            ssl_ca_cert: connection.optional_text("ssl_ca_cert"),
            retry_policy: retries(connection),
        },
        timeout: seconds("timeout", 60.0),
        poll_interval: seconds("poll_interval", 2.0),
        max_retries: session.get("max_retries").and_then(Value::as_u64).unwrap_or(5),
    })
}

fn request(read: &Read) -> Request {
    Request {
        url: read.text("url"),
        http_method: read.text("http_method"),
        api_spec_uri: read.optional_text("api_spec_uri"),
        data: read.value("data"),
        query_params: map(&read.value("query_params")),
        headers: map(&read.value("headers")),
        sensitive_headers: read.secret("sensitive_headers").cloned(),
        url_allow_list: Some(read.value("url_allow_list")).filter(Value::is_array).map(|urls| list(&urls)),
        retry_policy: retries(read),
    }
}

/// The reducer of each output that is collected: `append` for all of them unless the document says otherwise.
fn reducers(read: &Read) -> Option<Vec<(String, Reducer)>> {
    let reducer = |method: &Value| match method.as_str() {
        Some("sum") => Reducer::Sum,
        Some("average") => Reducer::Average,
        Some("max") => Reducer::Max,
        Some("min") => Reducer::Min,
        _ => Reducer::Append,
    };
    Some(match read.value("reducers") {
        Value::Object(map) => map.iter().map(|(name, method)| (name.clone(), reducer(method))).collect(),
        _ => {
            let outputs = &read.one("subflow")?.outputs;
            outputs.iter().map(|output| (output.title.clone(), Reducer::Append)).collect()
        }
    })
}

pub(super) fn retries(read: &Read) -> Option<RetryPolicy> {
    RetryPolicy::of(&read.value("retry_policy"))
}

pub(super) fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// A map of texts.
pub(super) fn texts(value: &Value) -> BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A list of texts, or a single one.
pub(super) fn list(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
