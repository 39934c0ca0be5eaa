//! The data flow of a flow: which output fills which input.

use super::MAX_HINTED;
use super::flow::Graph;
use crate::agent_spec::component::{Component, Held};
use crate::agent_spec::property::Property;
use crate::problem::Problems;
use crate::shape::shortened;
use std::collections::{HashMap, HashSet};

/// The most steps of looking for an input that may be unset; a flow that needs more is too large to be checked.
const MAX_STEPS: usize = 50_000_000;

/// Checks the data edges, and that every input has a value when its node runs.
pub(super) fn check(flow: &Component, problems: &mut Problems) {
    let graph = Graph::of(flow);
    let before = problems.errors();
    check_edges(flow, &graph, problems);
    if problems.errors() == before {
        check_filled(flow, &graph, problems);
    }
}

fn named<'a>(list: &'a [Property], title: &str) -> Option<&'a Property> {
    list.iter().find(|property| property.title == title)
}

/// Data edges lead from an output to an input of nodes of the same flow, whose types agree (AS-34, AS-35).
fn check_edges(flow: &Component, graph: &Graph<'_>, problems: &mut Problems) {
    for edge in flow.many("data_flow_connections") {
        let (Some(source), Some(destination)) = (edge.one("source_node"), edge.one("destination_node"))
        else {
            continue;
        };
        for (field, node) in [("source_node", source), ("destination_node", destination)] {
            if !graph.positions.contains_key(node.id.as_str()) {
                let message = format!(
                    "{}: its `{field}`, {}, is not in `nodes` of {}",
                    edge.shown(),
                    node.shown(),
                    flow.shown()
                );
                problems.error(edge.place(field), "AS-34", message);
            }
        }
        let (output, input) = (edge.text("source_output"), edge.text("destination_input"));
        let from = named(&source.outputs, &output);
        if from.is_none() {
            let known = source.outputs.iter().map(|property| property.title.as_str()).take(MAX_HINTED);
            let hint = crate::suggest::hint(&output, known);
            let message =
                format!("{}: {} has no output `{}`{hint}", edge.shown(), source.shown(), shortened(&output));
            problems.error(edge.place("source_output"), "AS-34", message);
        }
        let to = named(&destination.inputs, &input);
        if to.is_none() {
            let known = destination.inputs.iter().map(|property| property.title.as_str()).take(MAX_HINTED);
            let hint = crate::suggest::hint(&input, known);
            let message = format!(
                "{}: {} has no input `{}`{hint}",
                edge.shown(),
                destination.shown(),
                shortened(&input)
            );
            problems.error(edge.place("destination_input"), "AS-34", message);
        }
        if let Some((from, to)) = from.zip(to)
            && !from.r#type.is_castable_to(&to.r#type)
        {
            let message = format!(
                "{}: the output `{}` cannot be cast to the type of the input `{}`",
                edge.shown(),
                shortened(&output),
                shortened(&input)
            );
            problems.error(edge.at, "AS-35", message);
        }
    }
}

/// An input without a default is filled on every path to its node (AS-36).
fn check_filled(flow: &Component, graph: &Graph<'_>, problems: &mut Problems) {
    let Some(start) = graph.start(flow) else { return };
    let by_name = !matches!(flow.held.get("data_flow_connections"), Some(Held::Many(_)));
    let mut sources: HashMap<(usize, &str), HashSet<usize>> = HashMap::new();
    let mut by_title: HashMap<&str, HashSet<usize>> = HashMap::new();
    let titles: Vec<(String, usize, usize)> = edges(flow, graph);
    for (input, from, to) in &titles {
        sources.entry((*to, input.as_str())).or_default().insert(*from);
    }
    if by_name {
        for (at, node) in graph.nodes.iter().enumerate() {
            for output in &node.outputs {
                by_title.entry(output.title.as_str()).or_default().insert(at);
            }
        }
    }
    let (none, mut steps) = (HashSet::new(), 0_usize);
    for (at, node) in graph.nodes.iter().enumerate() {
        for input in node.inputs.iter().filter(|input| input.default.is_none()) {
            if at == start {
                continue;
            }
            let title = input.title.as_str();
            let filled = match by_name {
                true => by_title.get(title),
                false => sources.get(&(at, title)),
            };
            let filled = filled.unwrap_or(&none);
            if filled.contains(&start) {
                continue;
            }
            steps += graph.nodes.len();
            if steps > MAX_STEPS {
                let message = format!("{} is too large: it has too many inputs and nodes", flow.shown());
                problems.error(flow.at, "AS-17", message);
                return;
            }
            // A node that fills the input ends the search on its path: the input is set from there on.
            if graph.reached_from(start, |node| filled.contains(&node))[at] {
                let message = match filled.is_empty() {
                    true => format!("{}: nothing fills its input `{}`", node.shown(), shortened(title)),
                    false => format!(
                        "{}: its input `{}` is not filled on every path to it; give it a default",
                        node.shown(),
                        shortened(title)
                    ),
                };
                problems.unrunnable(node.at, "AS-36", message);
            }
        }
    }
}

/// The input, source and destination of every data edge.
fn edges(flow: &Component, graph: &Graph<'_>) -> Vec<(String, usize, usize)> {
    let edge = |edge: &std::sync::Arc<Component>| {
        let position = |field: &str| graph.positions.get(edge.one(field)?.id.as_str()).copied();
        Some((edge.text("destination_input"), position("source_node")?, position("destination_node")?))
    };
    flow.many("data_flow_connections").iter().filter_map(edge).collect()
}
