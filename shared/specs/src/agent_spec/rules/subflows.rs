//! Nodes that hold flows, and the nodes whose own rules are short.

use super::MAX_HINTED;
use crate::agent_spec::component::Component;
use crate::agent_spec::property::Property;
use crate::agent_spec::types::Type;
use crate::problem::Problems;
use crate::shape::shortened;
use serde_json::{Value, json};

/// The branch that a `CatchExceptionNode` takes when its subflow failed.
pub(super) const CAUGHT_BRANCH: &str = "caught_exception_branch";
/// The output that says why.
pub(super) const CAUGHT_INFO: &str = "caught_exception_info";

/// The nodes of a flow that end it.
fn ends(flow: &Component) -> impl Iterator<Item = &std::sync::Arc<Component>> {
    flow.many("nodes").iter().filter(|node| node.class.name == "EndNode")
}

/// One branch for each name that an `EndNode` of the flow has.
pub(super) fn branches_of(flow: &Component) -> Vec<String> {
    let mut branches: Vec<String> = Vec::new();
    for end in ends(flow) {
        let branch = end.text("branch_name");
        if !branches.contains(&branch) {
            branches.push(branch);
        }
    }
    branches
}

/// The outputs that every end of a flow has.
pub(super) fn common_outputs(flow: &Component) -> Vec<Property> {
    let mut all = ends(flow);
    let Some(first) = all.next() else { return Vec::new() };
    let mut outputs = first.outputs.clone();
    for end in all {
        outputs.retain(|output| end.outputs.iter().any(|other| other.title == output.title));
    }
    outputs
}

/// A map takes lists, or single values for every iteration, and collects what the iterations yield.
pub(super) fn map_signature(component: &Component) -> (Vec<Property>, Vec<Property>) {
    let Some(flow) = component.one("subflow") else { return Default::default() };
    let item = |property: &Property| {
        let mut schema = property.schema.clone();
        if let Value::Object(map) = &mut schema {
            for key in ["title", "default", "description"] {
                map.remove(key);
            }
        }
        schema
    };
    let iterated = |input: &Property| {
        let schema = json!({"anyOf": [item(input), {"type": "array", "items": item(input)}]});
        Property::inferred(&format!("iterated_{}", input.title), schema)
    };
    let reducers = component.value("reducers");
    let collected = |output: &Property| {
        let method = match reducers.as_object() {
            None => "append",
            Some(map) => map.get(&output.title)?.as_str()?,
        };
        let schema = match method {
            "append" => json!({"type": "array", "items": item(output)}),
            _ => item(output),
        };
        Some(Property::inferred(&format!("collected_{}", output.title), schema))
    };
    (flow.inputs.iter().map(iterated).collect(), flow.outputs.iter().filter_map(collected).collect())
}

/// `sum`, `average`, `max` and `min` are for numbers (AS-41).
pub(super) fn check_reducers(component: &Component, problems: &mut Problems) {
    let Some(flow) = component.one("subflow") else { return };
    let reducers = component.value("reducers");
    for (name, method) in reducers.as_object().into_iter().flatten() {
        let Some(output) = flow.outputs.iter().find(|output| output.title == *name) else {
            let hint = crate::suggest::hint(
                name,
                flow.outputs.iter().map(|output| output.title.as_str()).take(MAX_HINTED),
            );
            let message =
                format!("{}: its subflow has no output `{}`{hint}", component.shown(), shortened(name));
            problems.error(component.place("reducers"), "AS-41", message);
            continue;
        };
        let method = method.as_str().unwrap_or_default();
        if method != "append" && !output.r#type.is_numeric() {
            let message = format!(
                "{}: `{method}` is for numbers, and the output `{}` is none; use `append`",
                component.shown(),
                shortened(name)
            );
            problems.error(component.place("reducers"), "AS-41", message);
        }
    }
}

/// The union of inputs and outputs of flows that run at the same time.
pub(super) fn parallel_signature(component: &Component) -> (Vec<Property>, Vec<Property>) {
    let union = |of: fn(&Component) -> &[Property]| {
        let mut seen = std::collections::HashSet::new();
        let all = component.many("subflows").iter().flat_map(|flow| of(flow));
        all.filter(|property| seen.insert(property.title.clone())).cloned().collect()
    };
    (union(|flow| &flow.inputs), union(|flow| &flow.outputs))
}

/// Inputs of one name have one type; outputs of one name are refused (AS-43).
pub(super) fn check_parallel(component: &Component, problems: &mut Problems) {
    let at = component.place("subflows");
    if component.many("subflows").is_empty() {
        problems.error(at, "AS-43", format!("{} has no subflows; name one at least", component.shown()));
    }
    let mut inputs = std::collections::HashMap::new();
    let mut outputs = std::collections::HashSet::new();
    for flow in component.many("subflows") {
        for input in &flow.inputs {
            let known = inputs.entry(input.title.as_str()).or_insert(&input.r#type);
            if **known != input.r#type {
                let title = shortened(&input.title);
                let message =
                    format!("{}: its subflows have an input `{title}` of two types", component.shown());
                problems.error(at, "AS-43", message);
            }
        }
        for output in &flow.outputs {
            if !outputs.insert(output.title.as_str()) {
                let title = shortened(&output.title);
                let message = format!("{}: two of its subflows have an output `{title}`", component.shown());
                problems.error(at, "AS-43", message);
            }
        }
    }
}

/// A subflow whose failure is a branch.
pub(super) fn catch_signature(component: &Component) -> (Vec<Property>, Vec<Property>, Vec<String>) {
    let Some(flow) = component.one("subflow") else { return Default::default() };
    let mut outputs = flow.outputs.clone();
    let info = json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null});
    outputs.push(Property::inferred(CAUGHT_INFO, info));
    let mut branches = branches_of(flow);
    branches.push(CAUGHT_BRANCH.to_owned());
    (flow.inputs.clone(), outputs, branches)
}

/// Every output has a value when the subflow fails (AS-42).
pub(super) fn check_catch(component: &mut Component, problems: &mut Problems) {
    let Some(flow) = component.one("subflow").cloned() else { return };
    let at = component.place("subflow");
    if branches_of(&flow).iter().any(|branch| branch == CAUGHT_BRANCH) {
        let message = format!("{}: its subflow has a branch `{CAUGHT_BRANCH}` itself", component.shown());
        problems.error(at, "AS-42", message);
    }
    if flow.outputs.iter().any(|output| output.title == CAUGHT_INFO) {
        let message = format!("{}: its subflow has an output `{CAUGHT_INFO}` itself", component.shown());
        problems.error(at, "AS-42", message);
    }
    let mut missing = Vec::new();
    for output in &mut component.outputs {
        if output.default.is_none() {
            let inner = flow.outputs.iter().find(|inner| inner.title == output.title);
            output.default = inner.and_then(|inner| inner.default.clone());
            if output.title == CAUGHT_INFO {
                output.default = Some(Value::Null);
            }
        }
        match &output.default {
            None => missing.push(output.title.clone()),
            Some(default) => output.schema["default"] = default.clone(),
        }
    }
    for title in missing {
        let message = format!(
            "{}: the output `{}` has no default, which it needs when the subflow fails; declare one in `outputs`",
            component.shown(),
            shortened(&title)
        );
        problems.error(component.place("outputs"), "AS-42", message);
    }
}

/// A user's answer is one text (AS-44).
pub(super) fn check_input_message(component: &Component, problems: &mut Problems) {
    if !matches!(component.outputs.as_slice(), [only] if only.r#type == Type::String) {
        let message = format!("{} must have one output of the type string", component.shown());
        problems.error(component.place("outputs"), "AS-44", message);
    }
}

/// A branch is chosen by one value, compared as text (AS-40).
pub(super) fn check_branching(component: &Component, problems: &mut Problems) {
    if component.inputs.len() != 1 {
        let message = format!("{} must have one input: the key of its mapping", component.shown());
        problems.error(component.place("inputs"), "AS-40", message);
    }
}
