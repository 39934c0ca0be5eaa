//! `turnstone agent show --tree`: the nodes of a flow, or the agents of a team, with what is inside them.

use turnstone_specs::agent_spec::model::{Agent, AgenticComponent, Component, Flow, Node, NodeKind, Tool};
use turnstone_specs::agent_spec::{Registry, read};

/// The text between the names of a place in a flow.
const INSIDE: &str = " > ";

/// Returns the lines of the tree of a canonical Agent Spec document. The node or agent at this place, as an engagement
/// shows it, is marked.
///
/// # Errors
/// A sentence: it cannot be read, or is no agent, team or flow.
pub fn lines(document: &str, place: Option<&str>) -> Result<Vec<String>, String> {
    let component = component(document)?;
    let mut tree = Tree { lines: Vec::new(), trail: Vec::new(), place: place.map(str::to_owned) };
    if !matches!(component, AgenticComponent::Flow(_)) {
        tree.trail.push(component.head().name.clone());
    }
    tree.component(0, &component);
    Ok(tree.lines)
}

/// Reads a canonical Agent Spec document as an agent, team or flow.
///
/// # Errors
/// As [`lines`].
pub fn component(document: &str) -> Result<AgenticComponent, String> {
    let (specification, _) = read(document, &Registry::default()).map_err(|problems| {
        problems.first().map_or_else(|| "it cannot be read".to_owned(), ToString::to_string)
    })?;
    match specification.component() {
        Component::AgenticComponent(component) => Ok(component.clone()),
        _ => Err("it is no agent, team or flow".to_owned()),
    }
}

struct Tree {
    lines: Vec<String>,
    /// The names of the nodes around the current line.
    trail: Vec<String>,
    /// The place to mark.
    place: Option<String>,
}

impl Tree {
    fn add(&mut self, depth: usize, text: &str) {
        self.lines.push(format!("{}{text}", "  ".repeat(depth)));
    }

    /// Marks the line before, if it is the place: that of the trail, or of an agent in it.
    fn mark(&mut self, agent: Option<&str>) {
        let trail = self.trail.join(INSIDE);
        let at = match agent {
            Some(name) if !trail.ends_with(name) => format!("{trail}{INSIDE}{name}"),
            _ => trail,
        };
        if self.place.as_deref() == Some(at.as_str())
            && let Some(line) = self.lines.last_mut()
        {
            line.push_str("  <== here");
        }
    }

    fn component(&mut self, depth: usize, component: &AgenticComponent) {
        match component {
            AgenticComponent::Flow(flow) => self.flow(depth, flow),
            AgenticComponent::Swarm(swarm) => {
                self.add(depth, &format!("Swarm {}", swarm.head.name));
                self.component(depth + 1, &swarm.first_agent);
                let mut known = vec![swarm.first_agent.head().id.clone()];
                for (from, to) in &swarm.relationships {
                    for member in [from, to] {
                        if !known.contains(&member.head().id) {
                            known.push(member.head().id.clone());
                            self.component(depth + 1, member);
                        }
                    }
                }
                for (from, to) in &swarm.relationships {
                    self.add(depth + 1, &format!("{} -> {}", from.head().name, to.head().name));
                }
            }
            AgenticComponent::ManagerWorkers(team) => {
                self.add(depth, &format!("ManagerWorkers {}", team.head.name));
                self.component(depth + 1, &team.group_manager);
                for worker in &team.workers {
                    self.component(depth + 2, worker);
                }
            }
            other => match other.as_agent() {
                Some(agent) => self.agent(depth, &agent),
                None => {
                    self.add(depth, &format!("remote agent {}", other.head().name));
                    self.mark(Some(&other.head().name));
                }
            },
        }
    }

    fn agent(&mut self, depth: usize, agent: &Agent) {
        self.add(depth, &format!("Agent {} (model {})", agent.head.name, agent.llm_config.model_id));
        self.mark(Some(&agent.head.name));
        for tool in &agent.tools {
            self.tool(depth + 1, tool);
        }
        for toolbox in &agent.toolboxes {
            self.add(depth + 1, &format!("tools of {}", toolbox.client_transport.head.name));
        }
    }

    fn tool(&mut self, depth: usize, tool: &Tool) {
        let confirmed = if tool.requires_confirmation { ", after a confirmation" } else { "" };
        self.add(depth, &format!("tool {}{confirmed}", tool.head.name));
    }

    fn flow(&mut self, depth: usize, flow: &Flow) {
        self.add(depth, &format!("Flow {}", flow.head.name));
        for (at, node) in flow.nodes.iter().enumerate() {
            let leaving = flow.control_flow_connections.iter().filter(|edge| edge.from_node == at);
            let next: Vec<String> = leaving
                .map(|edge| {
                    let to = &flow.nodes[edge.to_node].head.name;
                    match edge.from_branch.as_str() {
                        "next" => format!(" -> {to}"),
                        branch => format!(" -{branch}-> {to}"),
                    }
                })
                .collect();
            let (name, class) = (&node.head.name, class(node));
            self.add(depth + 1, &format!("{name} ({class}){}", next.join(",")));
            self.trail.push(name.clone());
            if !matches!(node.kind, NodeKind::AgentNode(_)) {
                self.mark(None);
            }
            self.inside(depth + 2, node);
            self.trail.pop();
        }
    }

    fn inside(&mut self, depth: usize, node: &Node) {
        match &node.kind {
            NodeKind::ToolNode(tool) => self.tool(depth, tool),
            NodeKind::AgentNode(component) => self.component(depth, component),
            NodeKind::LlmNode { llm_config, .. } => {
                self.add(depth, &format!("model {}", llm_config.model_id))
            }
            NodeKind::FlowNode(flow) | NodeKind::CatchExceptionNode(flow) => self.flow(depth, flow),
            NodeKind::MapNode { subflow, .. } | NodeKind::ParallelMapNode { subflow, .. } => {
                self.flow(depth, subflow);
            }
            NodeKind::ParallelFlowNode(flows) => flows.iter().for_each(|flow| self.flow(depth, flow)),
            _ => {}
        }
    }
}

/// Returns the class of a node.
pub fn class(node: &Node) -> &'static str {
    match &node.kind {
        NodeKind::StartNode => "StartNode",
        NodeKind::EndNode { .. } => "EndNode",
        NodeKind::LlmNode { .. } => "LlmNode",
        NodeKind::ToolNode(_) => "ToolNode",
        NodeKind::AgentNode(_) => "AgentNode",
        NodeKind::FlowNode(_) => "FlowNode",
        NodeKind::BranchingNode { .. } => "BranchingNode",
        NodeKind::MapNode { .. } => "MapNode",
        NodeKind::ParallelMapNode { .. } => "ParallelMapNode",
        NodeKind::ParallelFlowNode(_) => "ParallelFlowNode",
        NodeKind::CatchExceptionNode(_) => "CatchExceptionNode",
        NodeKind::ApiNode(_) => "ApiNode",
        NodeKind::InputMessageNode { .. } => "InputMessageNode",
        NodeKind::OutputMessageNode { .. } => "OutputMessageNode",
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_team_is_shown_with_its_members_and_their_tools() {
        let llm = "{component_type: VllmConfig, id: l, name: l, model_id: m, url: http://m.example}";
        let agent = |name: &str, tools: &str| {
            format!(
                "{{component_type: Agent, id: {name}, name: {name}, description: d, llm_config: {llm}, system_prompt: Hi, tools: [{tools}]}}"
            )
        };
        let tool =
            "{component_type: ServerTool, id: t, name: add, description: Adds, requires_confirmation: true}";
        let document = format!(
            "component_type: ManagerWorkers\nid: mw\nname: team\nagentspec_version: 26.1.0\ngroup_manager: {}\nworkers: [{}]\n",
            agent("boss", ""),
            agent("adder", tool)
        )
        .replacen(llm, "{$component_ref: l}", 1)
            + &format!("$referenced_components: {{l: {llm}}}\n");
        let document = document.replace(&format!("llm_config: {llm}"), "llm_config: {$component_ref: l}");
        let shown = lines(&document, None).unwrap().join("\n");
        let expected = "ManagerWorkers team\n  Agent boss (model m)\n    Agent adder (model m)\n      tool add, after a confirmation";
        assert_eq!(shown, expected);
        let marked = lines(&document, Some("team > adder")).unwrap();
        assert_eq!(marked[2], "    Agent adder (model m)  <== here");
        assert_eq!(marked.iter().filter(|line| line.contains("here")).count(), 1);
        assert!(lines("a: b", None).is_err());
    }
}
