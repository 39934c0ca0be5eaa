//! The inputs, outputs and branches that a component infers from its fields, compared with what it declares.

use super::subflows;
use crate::agent_spec::class::Io;
use crate::agent_spec::component::Component;
use crate::agent_spec::property::{Names, Property, placeholders};
use crate::problem::Problems;
use crate::shape::shortened;
use serde_json::Value;

/// The signature that a component infers; `None` is left to its author.
#[derive(Default)]
struct Inferred {
    inputs: Option<Vec<Property>>,
    outputs: Option<Vec<Property>>,
    branches: Option<Vec<String>>,
    /// Inputs that may be declared as well, and need not be.
    optional: Vec<String>,
    /// `true` when the types are those of other components. Placeholders infer strings, which may be declared as anything.
    is_typed: bool,
}

/// The most inputs, outputs or branches of a component.
pub(in crate::agent_spec) const MAX_LISTED: usize = 1000;

/// The output of an `LlmNode` that declares none.
const GENERATED_TEXT: &str = "generated_text";
/// The input of a `BranchingNode` that declares none.
const MAPPING_KEY: &str = "branching_mapping_key";
/// The output of an `InputMessageNode` that declares none.
const USER_INPUT: &str = "user_input";

/// Fills in what is not declared, and checks what is (AS-23, AS-24, AS-39).
pub(super) fn settle(component: &mut Component, problems: &mut Problems) {
    if component.class.io == Io::None {
        return;
    }
    let inferred = infer(component);
    if let Some(inputs) = inferred.inputs {
        if component.declared.inputs {
            let optional = &inferred.optional;
            compare(component, "inputs", &component.inputs, &inputs, (optional, inferred.is_typed), problems);
        } else {
            component.inputs = inputs;
        }
    }
    if let Some(outputs) = inferred.outputs {
        if component.declared.outputs {
            compare(component, "outputs", &component.outputs, &outputs, (&[], inferred.is_typed), problems);
        } else {
            component.outputs = outputs;
        }
    }
    if component.class.io == Io::Node {
        let branches = inferred.branches.unwrap_or_else(|| vec!["next".to_owned()]);
        if component.declared.branches {
            compare_branches(component, &branches, problems);
        }
        component.branches = branches;
    }
    let most = component.inputs.len().max(component.outputs.len()).max(component.branches.len());
    if most > MAX_LISTED {
        let message = format!(
            "{} has {most} inputs, outputs or branches; at most {MAX_LISTED} are read",
            component.shown()
        );
        problems.error(component.at, "AS-17", message);
    }
}

fn infer(component: &Component) -> Inferred {
    let from_text = |text: &str| Some(placeholders(text).iter().map(|name| Property::text(name)).collect());
    let declared = component.declared;
    match component.class.name {
        "StartNode" | "EndNode" => ends(component),
        "LlmNode" => Inferred {
            inputs: from_text(&component.text("prompt_template")),
            outputs: (!declared.outputs).then(|| vec![Property::text(GENERATED_TEXT)]),
            ..Inferred::default()
        },
        "Agent" => Inferred { inputs: from_text(&component.text("system_prompt")), ..Inferred::default() },
        "AgentSpecializationParameters" => Inferred {
            inputs: from_text(&component.text("additional_instructions")),
            outputs: Some(Vec::new()),
            ..Inferred::default()
        },
        "InputMessageNode" => Inferred {
            inputs: from_text(&component.text("message")),
            outputs: (!declared.outputs).then(|| vec![Property::text(USER_INPUT)]),
            ..Inferred::default()
        },
        "OutputMessageNode" => Inferred {
            inputs: from_text(&component.text("message")),
            outputs: Some(Vec::new()),
            ..Inferred::default()
        },
        "BranchingNode" => branching(component),
        "RemoteTool" | "ApiNode" => request(component),
        "ToolNode" => same_as(component.one("tool")),
        "AgentNode" => same_as(component.one("agent")),
        "SpecializedAgent" => specialized(component),
        "FlowNode" => {
            let branches = component.one("subflow").map(|flow| subflows::branches_of(flow));
            Inferred { branches, ..same_as(component.one("subflow")) }
        }
        "MapNode" | "ParallelMapNode" => {
            let (inputs, outputs) = subflows::map_signature(component);
            typed(inputs, outputs)
        }
        "ParallelFlowNode" => {
            let (inputs, outputs) = subflows::parallel_signature(component);
            typed(inputs, outputs)
        }
        "CatchExceptionNode" => {
            let (inputs, outputs, branches) = subflows::catch_signature(component);
            Inferred { branches: Some(branches), ..typed(inputs, outputs) }
        }
        "Flow" => Inferred {
            inputs: component.one("start_node").map(|start| start.inputs.clone()),
            outputs: (!declared.outputs).then(|| subflows::common_outputs(component)),
            is_typed: true,
            ..Inferred::default()
        },
        _ => Inferred::default(),
    }
}

fn typed(inputs: Vec<Property>, outputs: Vec<Property>) -> Inferred {
    Inferred { inputs: Some(inputs), outputs: Some(outputs), is_typed: true, ..Inferred::default() }
}

fn same_as(inner: Option<&std::sync::Arc<Component>>) -> Inferred {
    inner.map_or_else(Inferred::default, |inner| typed(inner.inputs.clone(), inner.outputs.clone()))
}

/// A start and an end pass on what they receive.
fn ends(component: &Component) -> Inferred {
    let declared = component.declared;
    let branches = if component.class.name == "EndNode" { Vec::new() } else { vec!["next".to_owned()] };
    let (inputs, outputs) = match (declared.inputs, declared.outputs) {
        (true, true) => (Some(component.outputs.clone()), None),
        (false, true) => (Some(component.outputs.clone()), None),
        (_, false) => (None, Some(component.inputs.clone())),
    };
    Inferred { inputs, outputs, branches: Some(branches), is_typed: true, ..Inferred::default() }
}

/// A start and an end change no type: inputs and outputs that are both declared are equal (AS-24).
pub(super) fn check_passed_on(component: &Component, problems: &mut Problems) {
    for output in &component.outputs {
        let input = component.inputs.iter().find(|input| input.title == output.title);
        if input.is_some_and(|input| input.r#type != output.r#type) {
            let title = shortened(&output.title);
            let message =
                format!("{}: `{title}` has one type as input and another as output", component.shown());
            problems.error(component.place("outputs"), "AS-24", message);
        }
    }
}

fn branching(component: &Component) -> Inferred {
    let (mut branches, mut known) = (Vec::new(), std::collections::HashSet::new());
    let mapping = component.value("mapping");
    let named = mapping.as_object().into_iter().flatten().filter_map(|(_, branch)| branch.as_str());
    for branch in named.chain(["default"]) {
        if known.insert(branch) {
            branches.push(branch.to_owned());
        }
    }
    Inferred {
        inputs: (!component.declared.inputs).then(|| vec![Property::text(MAPPING_KEY)]),
        outputs: Some(Vec::new()),
        branches: Some(branches),
        ..Inferred::default()
    }
}

/// The placeholders of a request. Those of its secret headers may be declared: they are rendered too.
fn request(component: &Component) -> Inferred {
    let mut names = Names::default();
    for field in ["url", "http_method", "api_spec_uri", "data", "query_params", "headers"] {
        names.add_all(&component.value(field));
    }
    let mut optional = Names::default();
    if let Some(headers) = component.secret("sensitive_headers").and_then(|secret| secret.reveal()) {
        optional.add_all(headers);
    }
    let response = || vec![Property::inferred("response", serde_json::json!({}))];
    let answers = component.class.name == "ApiNode" && !component.declared.outputs;
    Inferred {
        inputs: Some(names.listed.iter().map(|name| Property::text(name)).collect()),
        outputs: answers.then(response),
        optional: optional.listed,
        ..Inferred::default()
    }
}

fn specialized(component: &Component) -> Inferred {
    let Some(agent) = component.one("agent") else { return Inferred::default() };
    let mut inputs = agent.inputs.clone();
    let more = component.one("agent_specialization_parameters");
    for input in more.into_iter().flat_map(|more| &more.inputs) {
        if !inputs.iter().any(|known| known.title == input.title) {
            inputs.push(input.clone());
        }
    }
    typed(inputs, agent.outputs.clone())
}

fn compare(
    component: &Component,
    key: &str,
    declared: &[Property],
    inferred: &[Property],
    (optional, is_typed): (&[String], bool),
    problems: &mut Problems,
) {
    let at = component.place(key);
    let titles = |list: &[Property]| -> std::collections::HashSet<String> {
        list.iter().map(|property| property.title.clone()).collect()
    };
    let (has, needs) = (titles(declared), titles(inferred));
    for missing in inferred.iter().filter(|property| !has.contains(&property.title)) {
        let title = shortened(&missing.title);
        let message = format!("`{key}` of {} lack `{title}`, which its fields use", component.shown());
        problems.error(at, "AS-23", message);
    }
    for more in declared.iter().filter(|property| !needs.contains(&property.title)) {
        if !optional.contains(&more.title) {
            let title = shortened(&more.title);
            let message =
                format!("`{key}` of {} have `{title}`, which nothing in it uses", component.shown());
            problems.error(at, "AS-23", message);
        }
    }
    if !is_typed {
        return;
    }
    let by_title: std::collections::HashMap<&str, &Property> =
        inferred.iter().map(|property| (property.title.as_str(), property)).collect();
    for property in declared {
        let Some(inner) = by_title.get(property.title.as_str()) else { continue };
        // A declaration may be narrower than what is inferred, or wider.
        if !(inner.r#type.is_castable_to(&property.r#type) || property.r#type.is_castable_to(&inner.r#type)) {
            let title = shortened(&property.title);
            let message = format!(
                "`{key}` of {}: `{title}` is declared with a type that its own type cannot be cast to",
                component.shown()
            );
            problems.error(at, "AS-24", message);
        }
    }
}

fn compare_branches(component: &Component, inferred: &[String], problems: &mut Problems) {
    let mut declared = component.branches.clone();
    declared.sort();
    let mut expected = inferred.to_vec();
    expected.sort();
    if declared != expected {
        let listed = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => Value::from(names.to_vec()).to_string(),
        };
        let message = format!(
            "`branches` of {} must be {}, not {}",
            component.shown(),
            listed(&expected),
            listed(&declared)
        );
        problems.error(component.place("branches"), "AS-39", message);
    }
}
