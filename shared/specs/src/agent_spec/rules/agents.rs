//! Agents: their tools, and how several work together.

use crate::agent_spec::component::{Component, Filter};
use crate::problem::Problems;
use crate::shape::shortened;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// A model calls a tool by its name, so no two tools of an agent share one (AS-53).
pub(super) fn check_tools(agent: &Component, problems: &mut Problems) {
    report_twice(agent.many("tools"), agent, "tools", problems);
}

fn report_twice<'a>(
    tools: impl IntoIterator<Item = &'a Arc<Component>>,
    of: &Component,
    field: &str,
    problems: &mut Problems,
) {
    let mut names = HashSet::new();
    for tool in tools {
        // Models receive names in which a blank is an underscore.
        if !names.insert(tool.name.replace(' ', "_")) {
            let message = format!("{} has two tools of the name `{}`", of.shown(), shortened(&tool.name));
            problems.error(of.place(field), "AS-53", message);
        }
    }
}

/// The tools of a specialised agent are those of both; an input of both has one type (AS-52, AS-53).
pub(super) fn check_specialized(component: &Component, problems: &mut Problems) {
    let (Some(agent), Some(more)) =
        (component.one("agent"), component.one("agent_specialization_parameters"))
    else {
        return;
    };
    for input in &more.inputs {
        let known = agent.inputs.iter().find(|known| known.title == input.title);
        if known.is_some_and(|known| known.r#type != input.r#type) {
            let message = format!(
                "{}: the input `{}` has one type in the agent and another in its specialization",
                component.shown(),
                shortened(&input.title)
            );
            problems.error(component.place("agent_specialization_parameters"), "AS-52", message);
        }
    }
    let tools = agent.many("tools").iter().chain(more.many("additional_tools"));
    report_twice(tools, component, "agent_specialization_parameters", problems);
}

/// A swarm has relationships, and says how conversations are handed over (AS-50).
pub(super) fn check_swarm(component: &Component, problems: &mut Problems) {
    if component.pairs("relationships").is_empty() {
        let message = format!(
            "{} has no relationships, so that its first agent would work alone; use that agent instead",
            component.shown()
        );
        problems.error(component.place("relationships"), "AS-50", message);
    }
    let mut pairs = HashSet::new();
    for (from, to) in component.pairs("relationships") {
        if !pairs.insert((&from.id, &to.id)) {
            let message = format!(
                "{} has the relationship from `{}` to `{}` twice",
                component.shown(),
                shortened(&from.name),
                shortened(&to.name)
            );
            problems.warning(component.place("relationships"), "AS-50", message);
        }
    }
    match component.value("handoff") {
        Value::Bool(flag) => {
            let word = if flag { "optional" } else { "never" };
            let message = format!("`handoff: {flag}` is deprecated; write `handoff: \"{word}\"`");
            problems.warning(component.place("handoff"), "AS-50", message);
        }
        Value::String(word) if ["never", "optional", "always"].contains(&word.as_str()) => {}
        _ => {
            let message = format!("`handoff` of {} must be never, optional or always", component.shown());
            problems.error(component.place("handoff"), "AS-06", message);
        }
    }
}

/// A manager has workers, and is none of them (AS-51).
pub(super) fn check_manager(component: &Component, problems: &mut Problems) {
    let workers = component.many("workers");
    if workers.is_empty() {
        let message = format!("{} has no workers; name one at least", component.shown());
        problems.error(component.place("workers"), "AS-51", message);
    }
    let manager = component.one("group_manager");
    if manager.is_some_and(|manager| workers.iter().any(|worker| worker.id == manager.id)) {
        let message = format!("{}: its manager is one of its workers", component.shown());
        problems.error(component.place("workers"), "AS-51", message);
    }
}

/// The output of a tool of an MCP server is one text (AS-55).
pub(super) fn check_filter(component: &Component, problems: &mut Problems) {
    use crate::agent_spec::types::Type;
    for entry in component.filter("tool_filter").unwrap_or_default() {
        let Filter::Spec(spec) = entry else { continue };
        let is_one_text = matches!(spec.outputs.as_slice(), [only] if only.r#type == Type::String);
        if spec.declared.outputs && !spec.outputs.is_empty() && !is_one_text {
            let message = format!("{} must have one output of the type string", spec.shown());
            problems.error(spec.place("outputs"), "AS-55", message);
        }
    }
}
