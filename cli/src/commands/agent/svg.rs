//! `turnstone agent show --svg`: the flows and teams of an Agent Spec document as a picture, one below the other.

use super::tree::{class, component};
use std::collections::VecDeque;
use turnstone_specs::agent_spec::model::{AgenticComponent, Flow, NodeKind};

/// The width of a box, in pixels.
const WIDTH: usize = 170;
/// The height of a box.
const HEIGHT: usize = 44;
/// The space between boxes.
const GAP: usize = 60;
/// The margin around everything, and the height of a title.
const MARGIN: usize = 30;

/// A flow or a team.
struct Graph {
    title: String,
    /// Names with what they are.
    boxes: Vec<(String, String)>,
    /// From, to, and the text beside it.
    edges: Vec<(usize, usize, String)>,
}

/// Returns the lines of the picture of a canonical Agent Spec document.
///
/// # Errors
/// A sentence: it cannot be read, or is no agent, team or flow.
pub fn drawing(document: &str) -> Result<Vec<String>, String> {
    let mut graphs = Vec::new();
    graphs_of(&component(document)?, &mut graphs);
    let (mut body, mut top, mut widest) = (Vec::new(), MARGIN, 0);
    for graph in &graphs {
        let (width, height) = draw(graph, top, &mut body);
        (top, widest) = (top + height + MARGIN, widest.max(width));
    }
    let width = widest + 2 * MARGIN;
    let head = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}" font-family="sans-serif" font-size="12">"#
    );
    let arrow = r##"<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>"##;
    let mut lines = vec![head, arrow.to_owned()];
    lines.append(&mut body);
    lines.push("</svg>".to_owned());
    Ok(lines)
}

fn graphs_of(component: &AgenticComponent, graphs: &mut Vec<Graph>) {
    let named = |component: &AgenticComponent| {
        let what = match component {
            AgenticComponent::Swarm(_) => "Swarm",
            AgenticComponent::ManagerWorkers(_) => "ManagerWorkers",
            AgenticComponent::Flow(_) => "Flow",
            other if other.as_agent().is_some() => "Agent",
            _ => "remote agent",
        };
        (component.head().name.clone(), what.to_owned())
    };
    let title = component.head().name.clone();
    match component {
        AgenticComponent::Flow(flow) => flow_graphs(flow, graphs),
        AgenticComponent::Swarm(swarm) => {
            let mut members = vec![&swarm.first_agent];
            let mut at = |member| match members.iter().position(|known| same(known, member)) {
                Some(known) => known,
                None => {
                    members.push(member);
                    members.len() - 1
                }
            };
            let edges =
                swarm.relationships.iter().map(|(from, to)| (at(from), at(to), String::new())).collect();
            graphs.push(Graph { title, boxes: members.into_iter().map(named).collect(), edges });
        }
        AgenticComponent::ManagerWorkers(team) => {
            let boxes: Vec<_> =
                std::iter::once(&team.group_manager).chain(&team.workers).map(named).collect();
            let edges = (1..boxes.len()).map(|worker| (0, worker, String::new())).collect();
            graphs.push(Graph { title, boxes, edges });
        }
        agent => graphs.push(Graph { title, boxes: vec![named(agent)], edges: Vec::new() }),
    }
}

fn same(one: &AgenticComponent, other: &AgenticComponent) -> bool {
    one.head().id == other.head().id
}

/// A flow, and after it the flows and teams inside its nodes.
fn flow_graphs(flow: &Flow, graphs: &mut Vec<Graph>) {
    let boxes = flow.nodes.iter().map(|node| (node.head.name.clone(), class(node).to_owned())).collect();
    let edges = flow.control_flow_connections.iter().map(|edge| {
        let branch = if edge.from_branch == "next" { String::new() } else { edge.from_branch.clone() };
        (edge.from_node, edge.to_node, branch)
    });
    graphs.push(Graph { title: flow.head.name.clone(), boxes, edges: edges.collect() });
    for node in &flow.nodes {
        match &node.kind {
            NodeKind::AgentNode(component) => graphs_of(component, graphs),
            NodeKind::FlowNode(flow) | NodeKind::CatchExceptionNode(flow) => flow_graphs(flow, graphs),
            NodeKind::MapNode { subflow, .. } | NodeKind::ParallelMapNode { subflow, .. } => {
                flow_graphs(subflow, graphs);
            }
            NodeKind::ParallelFlowNode(flows) => flows.iter().for_each(|flow| flow_graphs(flow, graphs)),
            _ => {}
        }
    }
}

/// The column of each box: its distance from the first one.
fn columns(graph: &Graph) -> Vec<usize> {
    let mut columns = vec![usize::MAX; graph.boxes.len()];
    let mut waiting = VecDeque::new();
    for begin in 0..columns.len() {
        if columns[begin] != usize::MAX {
            continue;
        }
        columns[begin] = 0;
        waiting.push_back(begin);
        while let Some(from) = waiting.pop_front() {
            for (_, to, _) in graph.edges.iter().filter(|edge| edge.0 == from) {
                if columns[*to] == usize::MAX {
                    columns[*to] = columns[from] + 1;
                    waiting.push_back(*to);
                }
            }
        }
    }
    columns
}

/// Draws a graph below `top`; returns its width and height.
fn draw(graph: &Graph, top: usize, lines: &mut Vec<String>) -> (usize, usize) {
    let columns = columns(graph);
    let mut rows = vec![0; columns.iter().max().map_or(0, |last| last + 1)];
    let places: Vec<(usize, usize)> = columns
        .iter()
        .map(|column| {
            let row = rows[*column];
            rows[*column] += 1;
            (MARGIN + column * (WIDTH + GAP), top + MARGIN + row * (HEIGHT + GAP))
        })
        .collect();
    lines
        .push(format!(r#"<text x="{MARGIN}" y="{top}" font-weight="bold">{}</text>"#, written(&graph.title)));
    for (from, to, text) in &graph.edges {
        let ((x1, y1), (x2, y2)) = (places[*from], places[*to]);
        let (middle, half) = (HEIGHT / 2, WIDTH / 2);
        let path = if x2 > x1 {
            format!("M{} {}L{} {}", x1 + WIDTH, y1 + middle, x2, y2 + middle)
        } else {
            // An edge back runs below the boxes.
            let below = y1.max(y2) + HEIGHT + GAP / 2;
            format!(
                "M{} {}L{} {below}L{} {below}L{} {}",
                x1 + half,
                y1 + HEIGHT,
                x1 + half,
                x2 + half,
                x2 + half,
                y2 + HEIGHT
            )
        };
        lines.push(format!(r##"<path d="{path}" fill="none" stroke="#555" marker-end="url(#arrow)"/>"##));
        if !text.is_empty() {
            let (x, y) = ((x1 + x2 + WIDTH) / 2, (y1 + y2 + HEIGHT) / 2 - 4);
            lines.push(format!(r#"<text x="{x}" y="{y}" text-anchor="middle">{}</text>"#, written(text)));
        }
    }
    for ((name, what), (x, y)) in graph.boxes.iter().zip(&places) {
        lines.push(format!(
            r##"<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f4f6fa" stroke="#345"/>"##
        ));
        let (middle, first, second) = (x + WIDTH / 2, y + 18, y + 35);
        let name: String = name.chars().take(26).collect();
        lines.push(format!(
            r#"<text x="{middle}" y="{first}" text-anchor="middle">{}</text>"#,
            written(&name)
        ));
        lines.push(format!(
            r##"<text x="{middle}" y="{second}" text-anchor="middle" font-size="10" fill="#666">{}</text>"##,
            written(what)
        ));
    }
    let most = rows.iter().max().copied().unwrap_or(1);
    (rows.len() * (WIDTH + GAP), MARGIN + most * (HEIGHT + GAP))
}

/// A text as it is written in XML; characters that XML forbids are left out.
fn written(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::drawing;

    #[test]
    fn a_flow_is_drawn_with_its_edges_and_names_are_escaped() {
        let document = r#"{"component_type": "Flow", "agentspec_version": "26.1.0", "id": "f", "name": "a <b> & c",
            "start_node": {"$component_ref": "s"}, "nodes": [{"$component_ref": "s"}, {"$component_ref": "e"}],
            "control_flow_connections": [{"component_type": "ControlFlowEdge", "id": "c", "name": "c",
                "from_node": {"$component_ref": "s"}, "to_node": {"$component_ref": "e"}}],
            "$referenced_components": {
                "s": {"component_type": "StartNode", "id": "s", "name": "begin"},
                "e": {"component_type": "EndNode", "id": "e", "name": "over"}}}"#;
        let lines = drawing(document).unwrap();
        assert!(lines[0].starts_with("<svg ") && lines.last().is_some_and(|last| last == "</svg>"));
        let all = lines.join("\n");
        assert!(all.contains("a &lt;b&gt; &amp; c") && all.contains(">begin<"), "{all}");
        assert_eq!((all.matches("<rect").count(), all.matches("marker-end").count()), (2, 1));
        assert!(drawing("a: b").is_err());
    }
}
