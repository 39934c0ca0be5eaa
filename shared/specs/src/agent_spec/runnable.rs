//! Documents that can be run: flows whose components all have a runtime here.

use super::component::{Component, Held};
use super::export::{export, secret_id};
use super::model::{self, AgenticComponent, Flow};
use super::{Registry, Specification, read};
use crate::problem::{Place, Problem, Problems, Severity};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_domain::agent::{AgentFormat, FlowDocument, Limits};
use turnstone_domain::{AgentDefinition, digest};

/// The most nodes that one run executes, a node in a loop counted each time.
pub const MAX_NODE_RUNS: u32 = 10_000;

/// The classes that can be run.
const RUNNABLE: [&str; 22] = [
    "Flow",
    "StartNode",
    "EndNode",
    "LlmNode",
    "ToolNode",
    "BranchingNode",
    "FlowNode",
    "MapNode",
    "ParallelMapNode",
    "ParallelFlowNode",
    "CatchExceptionNode",
    "ApiNode",
    "InputMessageNode",
    "OutputMessageNode",
    "ControlFlowEdge",
    "DataFlowEdge",
    "ServerTool",
    "ClientTool",
    "RemoteTool",
    "OpenAiCompatibleConfig",
    "VllmConfig",
    "OllamaConfig",
];

/// Reads a flow as an agent.
///
/// # Errors
/// Every problem found, in document order: those of [`read`], AS-00 for each component that cannot be run
/// yet, and AS-19 for a secret that no registry gives.
pub fn agent(source: &str, registry: &Registry) -> Result<(AgentDefinition, Vec<Problem>), Vec<Problem>> {
    let mut problems = Problems::default();
    if let Some((at, class)) = other_class(source) {
        let message = format!("a document of the class `{class}` cannot be run yet; only flows can");
        problems.error(at, "AS-00", message);
        return Err(problems.in_order());
    }
    let (specification, warnings) = read(source, registry)?;
    let Some(flow) = specification.flow() else {
        problems.error(specification.root.at, "AS-05", "the document is no flow");
        return Err(problems.in_order());
    };
    check(&specification.root, &mut problems);
    if problems.any_error() {
        return Err(problems.in_order());
    }
    let document = export(&specification).to_string();
    let values = secrets(&specification.root);
    let digest = digest::of_json(&serde_json::json!([document, values]));
    let agent = AgentDefinition {
        name: name_of(&flow.head.name),
        format: AgentFormat::AgentSpec,
        description: flow.head.description.clone().unwrap_or_default(),
        limits: Limits { max_turns: MAX_NODE_RUNS, ..Limits::default() },
        flow: Some(FlowDocument { document, values, digest }),
        ..AgentDefinition::default()
    };
    Ok((agent, warnings))
}

/// The class of a document that is a component and no flow, with its place.
fn other_class(source: &str) -> Option<(Place, String)> {
    let root = super::parse(source, &mut Problems::default())?;
    let class = root.get("component_type")?;
    let name = class.text().filter(|name| *name != "Flow")?;
    Some((root.at, crate::shape::shortened(name)))
}

/// Returns the flow of an agent.
///
/// # Errors
/// A sentence: the document was stored by a version of this program that reads it otherwise.
fn flow(stored: &FlowDocument) -> Result<Arc<Flow>, String> {
    let registry = stored
        .values
        .iter()
        .fold(Registry::default(), |registry, (id, value)| registry.with_value(id, value));
    let read = read(&stored.document, &registry);
    let first = |problems: Vec<Problem>| {
        let error = problems.iter().find(|problem| problem.severity == Severity::Error);
        error.map_or_else(|| "it cannot be read".to_owned(), ToString::to_string)
    };
    let (specification, _) = read.map_err(first)?;
    specification.flow().cloned().ok_or_else(|| "it is no flow".to_owned())
}

/// Returns the document of an agent as it may be shown: as it was written, or its canonical form when it
/// holds a secret or was read with parts.
#[must_use]
pub fn shown(source: String, agent: &AgentDefinition, warnings: &[Problem], has_parts: bool) -> String {
    let holds_secret = warnings.iter().any(|warning| warning.rule == "AS-18");
    match &agent.flow {
        Some(flow) if has_parts || holds_secret => flow.document.clone(),
        _ => source,
    }
}

/// Flows beyond this number are forgotten together and read again.
const KEPT: usize = 256;

/// The flows that were used lately, by their digests.
#[derive(Default)]
pub struct Flows {
    known: Mutex<HashMap<String, Arc<Flow>>>,
}

impl Flows {
    /// Returns the flow of an agent, read once.
    ///
    /// # Errors
    /// A sentence: the document was stored by a version of this program that reads it otherwise.
    pub fn get(&self, document: &FlowDocument) -> Result<Arc<Flow>, String> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flow) = known().get(&document.digest) {
            return Ok(Arc::clone(flow));
        }
        let flow = flow(document)?;
        let mut known = known();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(document.digest.clone(), Arc::clone(&flow));
        Ok(flow)
    }
}

impl Specification {
    fn flow(&self) -> Option<&Arc<Flow>> {
        match &self.component {
            model::Component::AgenticComponent(AgenticComponent::Flow(flow)) => Some(flow),
            _ => None,
        }
    }
}

/// Reports what cannot be run, each component once.
fn check(root: &Arc<Component>, problems: &mut Problems) {
    let (mut waiting, mut seen) = (vec![root], HashSet::new());
    while let Some(component) = waiting.pop() {
        if !seen.insert(component.id.as_str()) {
            continue;
        }
        waiting.extend(component.children());
        let class = component.class.name;
        if !RUNNABLE.contains(&class) && class != "OpenAiConfig" {
            problems.error(component.at, "AS-00", format!("{} cannot be run yet", component.shown()));
        }
        let is_given = |field: &&&str| component.secret(field).is_some();
        if let Some(field) = ["key_file", "cert_file", "ca_file"].iter().find(is_given) {
            let message = format!("{}: `{field}` cannot be used yet", component.shown());
            problems.error(component.place(field), "AS-00", message);
        }
        if let Some(api) = component.optional_text("api_type").filter(|api| api != "chat_completions") {
            let message = format!("{}: `api_type` `{api}` cannot be used yet", component.shown());
            problems.error(component.place("api_type"), "AS-00", message);
        }
        for (field, held) in &component.held {
            if let Held::Secret(secret) = held
                && secret.reveal().is_none()
            {
                let id = secret_id(secret, component, field);
                let message = format!(
                    "{}: `{field}` refers to `{id}`, which the registry does not give; register the document with it",
                    component.shown()
                );
                problems.error(component.place(field), "AS-19", message);
            }
        }
    }
}

/// The secrets by the ids of their references.
fn secrets(root: &Arc<Component>) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let (mut waiting, mut seen) = (vec![root], HashSet::new());
    while let Some(component) = waiting.pop() {
        if !seen.insert(component.id.as_str()) {
            continue;
        }
        waiting.extend(component.children());
        for (field, held) in &component.held {
            if let Held::Secret(secret) = held
                && let Some(value) = secret.reveal()
            {
                values.insert(secret_id(secret, component, field), value.clone());
            }
        }
    }
    values
}

/// The name of an agent from that of a component, which may be any text.
fn name_of(name: &str) -> String {
    let lower = name.to_lowercase();
    let kept = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(253);
    let parted: String = kept.collect();
    let name = parted.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if name.is_empty() { "flow".to_owned() } else { name }
}
