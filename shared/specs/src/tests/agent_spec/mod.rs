//! Documents of Agent Spec: what is read, what is refused and where.

mod casts;
mod components;
mod documents;
mod exports;
mod flows;
mod limits;
mod models;
mod types;

use crate::agent_spec::{self, Registry, Specification};
use crate::{Problem, Severity};

/// An agent without anything that is not needed.
const AGENT: &str = "component_type: Agent
id: a
name: desk
llm_config: {component_type: VllmConfig, id: l, name: model, model_id: m, url: http://model.example}
system_prompt: You help {{who}}.
agentspec_version: 25.4.1
";

/// A flow that asks a model: start, ask, end.
const FLOW: &str = "component_type: Flow
id: f
name: ask
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: ask}, {$component_ref: end}]
control_flow_connections:
- {component_type: ControlFlowEdge, id: c1, name: c1, from_node: {$component_ref: start}, to_node: {$component_ref: ask}}
- {component_type: ControlFlowEdge, id: c2, name: c2, from_node: {$component_ref: ask}, to_node: {$component_ref: end}}
data_flow_connections:
- {component_type: DataFlowEdge, id: d1, name: d1, source_node: {$component_ref: start}, source_output: city, destination_node: {$component_ref: ask}, destination_input: city}
- {component_type: DataFlowEdge, id: d2, name: d2, source_node: {$component_ref: ask}, source_output: generated_text, destination_node: {$component_ref: end}, destination_input: answer}
$referenced_components:
  start: {component_type: StartNode, id: start, name: start, inputs: [{title: city, type: string}]}
  ask:
    component_type: LlmNode
    id: ask
    name: ask
    prompt_template: What is {{ city }} known for?
    llm_config: {component_type: OpenAiConfig, id: llm, name: llm, model_id: small}
  end: {component_type: EndNode, id: end, name: end, outputs: [{title: answer, type: string}]}
agentspec_version: 25.4.1
";

/// `rule@line:column` of every error of a document that is checked.
fn errors(source: &str) -> Vec<String> {
    problem_names(agent_spec::lint(source, &Registry::default(), None), Severity::Error)
}

/// `rule@line:column` of every warning of a document that is checked.
fn warnings(source: &str) -> Vec<String> {
    problem_names(agent_spec::lint(source, &Registry::default(), None), Severity::Warning)
}

/// `rule@line:column` of every error of a document that is to be run.
fn run_errors(source: &str) -> Vec<String> {
    let read = agent_spec::read(source, &Registry::default());
    problem_names(read.map(|(_, warnings)| warnings), Severity::Error)
}

fn problem_names(problems: Result<Vec<Problem>, Vec<Problem>>, severity: Severity) -> Vec<String> {
    let problems = problems.unwrap_or_else(|problems| problems);
    let shown = problems.into_iter().filter(|problem| problem.severity == severity);
    shown.map(|problem| format!("{}@{}:{}", problem.rule, problem.line, problem.column)).collect()
}

/// The rules of the errors alone.
fn rules(source: &str) -> Vec<String> {
    errors(source).iter().filter_map(|error| Some(error.split_once('@')?.0.to_owned())).collect()
}

fn read(source: &str) -> Specification {
    read_with(source, &Registry::default())
}

fn read_with(source: &str, registry: &Registry) -> Specification {
    agent_spec::read(source, registry).unwrap_or_else(|problems| panic!("{source}\n{problems:#?}")).0
}

/// A document with a text replaced, which must be there.
fn with(document: &str, old: &str, new: &str) -> String {
    let changed = document.replacen(old, new, 1);
    assert_ne!(changed, document, "{old} is not in the document");
    changed
}
