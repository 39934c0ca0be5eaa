//! The control flow of a flow: where it starts and ends, and which node follows which.

use super::MAX_HINTED;
use crate::agent_spec::component::Component;
use crate::problem::Problems;
use crate::shape::shortened;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Nodes by their position in `nodes`, and the control edges between them.
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<&'a Arc<Component>>,
    pub(super) positions: HashMap<&'a str, usize>,
    /// The nodes that may follow each node.
    pub(super) next: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(flow: &'a Component) -> Self {
        let (mut nodes, mut positions) = (Vec::new(), HashMap::new());
        for node in flow.many("nodes") {
            if !positions.contains_key(node.id.as_str()) {
                positions.insert(node.id.as_str(), nodes.len());
                nodes.push(node);
            }
        }
        let mut next = vec![Vec::new(); nodes.len()];
        for edge in flow.many("control_flow_connections") {
            let position = |field: &str| positions.get(edge.one(field)?.id.as_str()).copied();
            if let Some((from, to)) = position("from_node").zip(position("to_node")) {
                next[from].push(to);
            }
        }
        Self { nodes, positions, next }
    }

    pub(super) fn start(&self, flow: &Component) -> Option<usize> {
        self.positions.get(flow.one("start_node")?.id.as_str()).copied()
    }

    /// The nodes that are reached from a node along the edges. A blocked node is reached, and nothing beyond it.
    pub(super) fn reached_from(&self, from: usize, is_blocked: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        let mut waiting = vec![from];
        reached[from] = true;
        while let Some(node) = waiting.pop() {
            if is_blocked(node) {
                continue;
            }
            for &next in &self.next[node] {
                if !std::mem::replace(&mut reached[next], true) {
                    waiting.push(next);
                }
            }
        }
        reached
    }
}

/// Checks the nodes and the control edges.
pub(super) fn check(flow: &Component, problems: &mut Problems) {
    let graph = Graph::of(flow);
    check_nodes(flow, problems);
    check_start(flow, &graph, problems);
    check_edges(flow, &graph, problems);
    check_ends(flow, problems);
    check_reached(flow, &graph, problems);
}

/// A node is listed once (AS-30).
fn check_nodes(flow: &Component, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for node in flow.many("nodes").iter().filter(|node| !seen.insert(node.id.as_str())) {
        let message = format!("{} lists {} twice in `nodes`", flow.shown(), node.shown());
        problems.warning(flow.place("nodes"), "AS-30", message);
    }
}

/// A flow has one `StartNode`, which is its `start_node` and is in `nodes` (AS-30).
fn check_start(flow: &Component, graph: &Graph<'_>, problems: &mut Problems) {
    let Some(start) = flow.one("start_node") else { return };
    let at = flow.place("start_node");
    if start.class.name != "StartNode" {
        let message = format!("`start_node` of {} must be a StartNode, not {}", flow.shown(), start.shown());
        problems.error(at, "AS-30", message);
    }
    if graph.start(flow).is_none() {
        let message = format!("{}: its `start_node` is not in `nodes`", flow.shown());
        problems.error(at, "AS-30", message);
    }
    let others = graph.nodes.iter().filter(|node| node.class.name == "StartNode" && node.id != start.id);
    for other in others {
        let message =
            format!("{} has a second StartNode, `{}`; a flow has one", flow.shown(), shortened(&other.name));
        problems.error(flow.place("nodes"), "AS-30", message);
    }
}

/// Control edges lead from a branch of a node to a node of the same flow (AS-32).
fn check_edges(flow: &Component, graph: &Graph<'_>, problems: &mut Problems) {
    let mut taken = HashSet::new();
    for edge in flow.many("control_flow_connections") {
        let (Some(from), Some(to)) = (edge.one("from_node"), edge.one("to_node")) else { continue };
        for (field, node) in [("from_node", from), ("to_node", to)] {
            if !graph.positions.contains_key(node.id.as_str()) {
                let message = format!(
                    "{}: its `{field}`, {}, is not in `nodes` of {}",
                    edge.shown(),
                    node.shown(),
                    flow.shown()
                );
                problems.error(edge.place(field), "AS-32", message);
            }
        }
        if to.class.name == "StartNode" {
            let message = format!("{} leads to the StartNode; no edge may", edge.shown());
            problems.error(edge.place("to_node"), "AS-32", message);
        }
        if from.class.name == "EndNode" {
            let message = format!("{} leaves {}; a flow ends there", edge.shown(), from.shown());
            problems.error(edge.place("from_node"), "AS-32", message);
            continue;
        }
        let branch = edge.optional_text("from_branch").unwrap_or_else(|| "next".to_owned());
        if !from.branches.contains(&branch) {
            let hint =
                crate::suggest::hint(&branch, from.branches.iter().map(String::as_str).take(MAX_HINTED));
            let message = format!(
                "{} leaves {} by the branch `{}`, which it does not have; it has {}{hint}",
                edge.shown(),
                from.shown(),
                shortened(&branch),
                from.branches
                    .iter()
                    .take(MAX_HINTED)
                    .map(|name| shortened(name))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            problems.unrunnable(edge.place("from_branch"), "AS-32", message);
        }
        if !taken.insert((from.id.as_str(), branch.clone())) {
            let message = format!(
                "{} is a second edge from the branch `{}` of {}; a branch leads to one node",
                edge.shown(),
                shortened(&branch),
                from.shown()
            );
            if from.class.name == "StartNode" {
                problems.error(edge.at, "AS-32", message);
                continue;
            }
            problems.unrunnable(edge.at, "AS-32", message);
        }
    }
    let start = flow.one("start_node").map(|start| start.id.as_str()).unwrap_or_default();
    if !taken.iter().any(|(from, _)| *from == start) {
        problems.error(flow.at, "AS-32", format!("{}: no control edge leaves its StartNode", flow.shown()));
    }
}

/// A flow has an end, and outputs of one name have one type in all ends (AS-31, AS-37).
fn check_ends(flow: &Component, problems: &mut Problems) {
    let ends: Vec<_> = flow.many("nodes").iter().filter(|node| node.class.name == "EndNode").collect();
    if ends.is_empty() {
        problems.error(flow.place("nodes"), "AS-31", format!("{} has no EndNode", flow.shown()));
        return;
    }
    let mut types = HashMap::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for end in &ends {
        for output in &end.outputs {
            let known = types.entry(output.title.as_str()).or_insert(&output.r#type);
            if **known != output.r#type {
                let title = shortened(&output.title);
                let message =
                    format!("{}: its EndNodes have an output `{title}` of different types", flow.shown());
                problems.error(end.place("outputs"), "AS-37", message);
            }
            *counts.entry(output.title.as_str()).or_default() += 1;
        }
    }
    for output in flow.outputs.iter().filter(|output| output.default.is_none()) {
        let title = shortened(&output.title);
        if counts.get(output.title.as_str()).copied().unwrap_or_default() < ends.len() {
            let message = format!(
                "{}: the output `{title}` is not one of every EndNode, so it needs a default in `outputs`",
                flow.shown()
            );
            problems.error(flow.place("outputs"), "AS-37", message);
        } else if types.get(output.title.as_str()).is_some_and(|inner| !inner.is_castable_to(&output.r#type))
        {
            let message = format!(
                "{}: the output `{title}` has another type in its EndNodes, which cannot be cast to it",
                flow.shown()
            );
            problems.error(flow.place("outputs"), "AS-37", message);
        }
    }
}

/// An edge leads to every node (AS-33).
fn check_reached(flow: &Component, graph: &Graph<'_>, problems: &mut Problems) {
    let Some(start) = graph.start(flow) else { return };
    let mut led_to = vec![false; graph.nodes.len()];
    led_to[start] = true;
    graph.next.iter().flatten().for_each(|&node| led_to[node] = true);
    let reached = graph.reached_from(start, |_| false);
    for (at, node) in graph.nodes.iter().enumerate() {
        if !led_to[at] && node.class.name != "StartNode" {
            let message = format!("{}: no control edge leads to {}", flow.shown(), node.shown());
            problems.unrunnable(node.at, "AS-33", message);
        } else if !reached[at] && node.class.name != "StartNode" {
            let message = format!("{}: no path leads from its start to {}", flow.shown(), node.shown());
            problems.warning(node.at, "AS-33", message);
        }
    }
}
