//! `spec.tools`: what the agent may call.
//!
//! A manifest says that an agent uses a tool; how the tool is reached (URL, headers, secrets) is the business of this
//! server's registry, which the names refer to. A tool with `capabilities` offers those, else it is one itself.

use super::errors;
use super::limits::milliseconds;
use crate::problem::{Place, Problems};
use crate::tree::Node;
use crate::{Names, suggest};
use std::collections::HashSet;
use turnstone_domain::agent::Capability;
use turnstone_domain::schema::Schema;

const RULE: &str = "OSSA-tools";

/// Reads the capabilities in document order.
pub(super) fn read(root: &Node, names: Option<&Names<'_>>, problems: &mut Problems) -> Vec<Capability> {
    let mut capabilities: Vec<Capability> = Vec::new();
    let mut seen = HashSet::new();
    for tool in root.at_path(&["spec", "tools"]).map(Node::items).unwrap_or_default() {
        check_tool(tool, problems);
        for (at, mut capability) in offered(tool, problems) {
            capability.parallel = errors::is_parallel(tool);
            check_name(at, &capability.name, names, problems);
            if seen.insert(capability.name.clone()) {
                capabilities.push(capability);
            } else {
                problems.error(
                    at,
                    RULE,
                    format!("the tool `{}` is there twice; remove one", capability.name),
                );
            }
        }
    }
    capabilities
}

fn check_tool(tool: &Node, problems: &mut Problems) {
    let has = |key: &str| tool.get(key).is_some();
    if !has("type") && !has("source") {
        problems.error(tool.at, RULE, "a tool needs a `type`, for example `type: http`");
    }
    let delegates = tool.at_path(&["source", "type"]).and_then(Node::text) == Some("delegation");
    if delegates || tool.get("type").and_then(Node::text) == Some("a2a") {
        let message =
            "this tool is another agent; name it in `spec.collaboration.delegation.allowed_agents` instead";
        problems.error(tool.at, "OAS-10", message);
    }
    for key in ["auth", "endpoint", "server"] {
        if let Some(node) = tool.get(key) {
            let message = format!(
                "`{key}` of a tool is not used: this server's tool registry says how a tool is reached"
            );
            problems.warning(node.at, RULE, message);
        }
    }
    if let Some(node) = tool.get("approval_required").filter(|node| node.flag() == Some(true)) {
        problems.warning(
            node.at,
            RULE,
            "`approval_required` of a tool is not enforced yet: its calls run without asking anybody",
        );
    }
    if tool.get("name").is_none() && tool.get("capabilities").is_none_or(|list| list.items().is_empty()) {
        problems.error(
            tool.at,
            RULE,
            "a tool needs a `name` or `capabilities`, which name it in this server's tool registry",
        );
    }
}

fn offered(tool: &Node, problems: &mut Problems) -> Vec<(Place, Capability)> {
    let listed = tool.get("capabilities").map(Node::items).unwrap_or_default();
    if listed.is_empty() {
        let Some((node, name)) = tool.get("name").and_then(|node| Some((node, node.text()?))) else {
            return Vec::new();
        };
        return vec![(
            node.at,
            capability(name, (tool, tool), tool.get("timeout_ms").and_then(Node::integer), problems),
        )];
    }
    listed
        .iter()
        .filter_map(|node| {
            let (at, name) = match node.text() {
                Some(name) => (node.at, name),
                None => node.get("name").and_then(|name| Some((name.at, name.text()?)))?,
            };
            let seconds = node.at_path(&["timeout", "execution_seconds"]).and_then(Node::number);
            let timeout =
                seconds.filter(|seconds| *seconds > 0.0).map(|seconds| milliseconds(seconds).cast_signed());
            Some((at, capability(name, (tool, node), timeout, problems)))
        })
        .collect()
}

fn capability(
    name: &str,
    (tool, node): (&Node, &Node),
    timeout_ms: Option<i64>,
    problems: &mut Problems,
) -> Capability {
    let schema = node.get("input_schema").map(|schema| (schema.at, schema.to_json()));
    if let Some((at, schema)) = &schema
        && let Err(e) = Schema::compile(schema)
    {
        problems.error(*at, RULE, format!("`input_schema` of `{name}`: {e}"));
    }
    Capability {
        description: node.get("description").and_then(Node::text).map(str::to_owned),
        input_schema: schema.map(|(_, schema)| schema),
        timeout_ms: timeout_ms.and_then(|ms| u64::try_from(ms).ok()),
        errors: errors::of_capability(tool, node),
        ..Capability::named(name)
    }
}

fn check_name(at: Place, name: &str, names: Option<&Names<'_>>, problems: &mut Problems) {
    let show = crate::shape::shortened(name);
    if name.starts_with("oagent://") {
        problems.error(
            at,
            "OAS-10",
            format!(
                "`{show}` is an agent; name it in `spec.collaboration.delegation.allowed_agents` instead"
            ),
        );
        return;
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > 253 || !name.chars().all(allowed) {
        let message = format!(
            "`{show}` is not a tool name: only letters, digits, `_`, `-` and `.` are allowed, at most 253"
        );
        problems.error(at, RULE, message);
        return;
    }
    let Some(names) = names else { return };
    if names.tools.contains(&name) {
        return;
    }
    if names.agents.contains(&name) {
        problems.error(
            at,
            "OAS-09",
            format!(
                "`{show}` is an agent; name it in `spec.collaboration.delegation.allowed_agents` instead"
            ),
        );
        return;
    }
    let hint = suggest::hint(name, names.tools.iter().copied());
    problems.error(
        at,
        RULE,
        format!(
            "there is no tool `{show}` on this server{hint}; add it to the tool registry, or remove it here"
        ),
    );
}
