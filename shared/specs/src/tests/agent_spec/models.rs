//! The model that a runtime gets.

use super::{AGENT, FLOW, read, with};
use crate::agent_spec::Version;
use crate::agent_spec::model::{
    Agent, AgenticComponent, Component, DataFlow, Flow, Jitter, LlmKind, Node, NodeKind, Reducer, ToolFilter,
    ToolKind,
};
use std::sync::Arc;

fn flow(source: &str) -> Arc<Flow> {
    match read(source).component() {
        Component::AgenticComponent(AgenticComponent::Flow(flow)) => flow.clone(),
        other => panic!("{other:?}"),
    }
}

fn agent(source: &str) -> Arc<Agent> {
    match read(source).component() {
        Component::AgenticComponent(AgenticComponent::Agent(agent)) => agent.clone(),
        other => panic!("{other:?}"),
    }
}

fn node(fields: &str) -> Arc<Node> {
    match read(&format!("id: n\nname: n\nagentspec_version: 26.3.1\n{fields}\n")).component() {
        Component::Node(node) => node.clone(),
        other => panic!("{other:?}"),
    }
}

fn titles(properties: &[crate::agent_spec::Property]) -> Vec<&str> {
    properties.iter().map(|property| property.title.as_str()).collect()
}

#[test]
fn a_flow_has_nodes_edges_and_what_was_inferred() {
    let flow = flow(FLOW);
    assert_eq!((flow.head.id.as_str(), flow.start_node), ("f", 0));
    assert_eq!((titles(&flow.inputs), titles(&flow.outputs)), (vec!["city"], vec!["answer"]));
    assert_eq!((flow.next(0, "next"), flow.next(1, "next"), flow.next(2, "next")), (Some(1), Some(2), None));
    assert_eq!(flow.filled_by(0, "city"), [(1, "city")]);
    assert_eq!(flow.filled_by(1, "generated_text"), [(2, "answer")]);
    let [start, ask, end] = flow.nodes.as_slice() else { panic!("{flow:?}") };
    assert!(matches!(start.kind, NodeKind::StartNode) && titles(&start.outputs) == ["city"]);
    assert_eq!((titles(&ask.inputs), titles(&ask.outputs)), (vec!["city"], vec!["generated_text"]));
    assert_eq!(ask.branches, ["next"]);
    let NodeKind::LlmNode { llm_config, prompt_template } = &ask.kind else { panic!("{ask:?}") };
    assert_eq!(prompt_template, "What is {{ city }} known for?");
    assert!(llm_config.model_id == "small" && matches!(llm_config.kind, LlmKind::OpenAiConfig));
    assert_eq!(llm_config.api_type.as_deref(), Some("chat_completions"));
    assert!(matches!(&end.kind, NodeKind::EndNode { branch_name } if branch_name == "next"));
    assert!(end.branches.is_empty() && titles(&end.inputs) == ["answer"]);
    let (head, rest) = FLOW.split_once("data_flow_connections:").unwrap();
    let rest = rest.split_once("$referenced").unwrap().1.replace("title: answer", "title: generated_text");
    let by_name = self::flow(&format!("{head}$referenced{rest}"));
    assert_eq!(by_name.data_flow_connections, DataFlow::ByName);
    assert_eq!(by_name.filled_by(1, "generated_text"), [(2, "generated_text")]);
}

#[test]
fn what_a_document_shares_the_model_shares() {
    let tool = "{component_type: ServerTool, id: t, name: t}";
    let agent = agent(&with(
        AGENT,
        "name: desk",
        &format!(
            "name: desk\ntools: [{{$component_ref: t}}]\ntransforms: []\n$referenced_components: {{t: {tool}}}"
        ),
    ));
    assert!(matches!(agent.tools[0].kind, ToolKind::ServerTool) && !agent.tools[0].requires_confirmation);
    assert!(agent.human_in_the_loop && titles(&agent.inputs) == ["who"] && agent.outputs.is_empty());
    let twice = "control_flow_connections:";
    let copy = with(FLOW, "nodes: [", "nodes: [{$component_ref: more}, ");
    let copy = with(
        &copy,
        twice,
        "control_flow_connections:\n- {component_type: ControlFlowEdge, id: c3, name: c3, from_node: {$component_ref: more}, to_node: {$component_ref: more}}",
    );
    let copy = with(
        &copy,
        "$referenced_components:",
        "$referenced_components:\n  more: {component_type: LlmNode, id: more, name: more, prompt_template: hi, llm_config: {$component_ref: llm}}",
    );
    let copy = with(
        &copy,
        "{component_type: OpenAiConfig, id: llm, name: llm, model_id: small}",
        "{$component_ref: llm}",
    ) + "";
    let copy = with(
        &copy,
        "  end:",
        "  llm: {component_type: OpenAiConfig, id: llm, name: llm, model_id: small}\n  end:",
    );
    let flow = flow(&copy);
    let model = |at: usize| match &flow.nodes[at].kind {
        NodeKind::LlmNode { llm_config, .. } => llm_config.clone(),
        other => panic!("{other:?}"),
    };
    assert!(Arc::ptr_eq(&model(0), &model(2)));
}

/// AGS-08: signatures are inferred.
#[test]
fn nodes_infer_what_their_flows_need() {
    let inner = with(FLOW, "\nagentspec_version: 25.4.1\n", "\n").replace('\n', "\n    ");
    let holding = |fields: &str| node(&format!("{fields}\n$referenced_components:\n  f:\n    {inner}\n"));
    let map = holding("component_type: ParallelMapNode\nsubflow: {$component_ref: f}");
    assert_eq!(
        (titles(&map.inputs), titles(&map.outputs)),
        (vec!["iterated_city"], vec!["collected_answer"])
    );
    let NodeKind::ParallelMapNode { subflow, reducers } = &map.kind else { panic!("{map:?}") };
    assert_eq!(
        (subflow.nodes.len(), reducers.as_slice()),
        (3, &[("answer".to_owned(), Reducer::Append)][..])
    );
    let flow = holding("component_type: FlowNode\nsubflow: {$component_ref: f}");
    assert_eq!((titles(&flow.inputs), titles(&flow.outputs)), (vec!["city"], vec!["answer"]));
    let catch = holding(
        "component_type: CatchExceptionNode\nsubflow: {$component_ref: f}\noutputs: [{title: answer, default: none}, {title: caught_exception_info}]",
    );
    assert_eq!(catch.branches, ["next", "caught_exception_branch"]);
    assert!(catch.outputs.iter().all(|output| output.default.is_some()));
    let branching = node("component_type: BranchingNode\nmapping: {a: one, b: one, c: two}");
    assert_eq!(branching.branches, ["one", "two", "default"]);
    assert_eq!(titles(&branching.inputs), ["branching_mapping_key"]);
    let api = node(
        "component_type: ApiNode\nurl: http://a.example/{{path}}\nhttp_method: POST\ndata: {q: ['{{word}}']}\nretry_policy: {max_attempts: 5, jitter: null}",
    );
    assert_eq!((titles(&api.inputs), titles(&api.outputs)), (vec!["path", "word"], vec!["response"]));
    let NodeKind::ApiNode(request) = &api.kind else { panic!("{api:?}") };
    let policy = request.retry_policy.clone().unwrap();
    assert_eq!((policy.max_attempts, policy.jitter, policy.max_retry_delay), (5, None, 8.0));
    assert_eq!(
        crate::agent_spec::model::RetryPolicy::default().jitter,
        Some(Jitter::FullAndEqualForThrottle)
    );
}

#[test]
fn a_tool_box_says_which_tools_are_used() {
    let source = "component_type: MCPToolBox\nid: b\nname: b\nagentspec_version: 26.3.1\nclient_transport: {component_type: SSETransport, id: s, name: s, url: http://m.example, session_parameters: {read_timeout_seconds: 5}}\n";
    let filter = |filter: &str| match read(&format!("{source}{filter}\n")).component() {
        Component::ToolBox(toolbox) => toolbox.clone(),
        other => panic!("{other:?}"),
    };
    assert!(filter("").tool_filter.is_none());
    assert_eq!(filter("tool_filter: []").tool_filter.as_ref().map(Vec::len), Some(0));
    let toolbox =
        filter("tool_filter: [find, {component_type: MCPToolSpec, id: s2, name: look, inputs: []}]");
    assert_eq!(toolbox.client_transport.read_timeout_seconds, 5.0);
    match toolbox.tool_filter.as_deref() {
        Some([ToolFilter::Name(name), ToolFilter::Spec(spec)]) => {
            assert!(name == "find" && spec.inputs == Some(vec![]) && spec.outputs.is_none());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_component_without_an_id_has_the_same_one_each_time() {
    let source = with(AGENT, "id: l, ", "");
    let ids = || agent(&source).llm_config.head.id.clone();
    assert_eq!(ids(), ids());
    assert_eq!(ids(), "VllmConfig_1");
    assert_eq!(read(&source).version(), Version::V25_4_1);
}
