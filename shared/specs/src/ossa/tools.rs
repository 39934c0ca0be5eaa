//! `spec.tools`: the tools that the agent may call.
//!
//! An entry means the tool of that name in the server's registry, if there is one. Otherwise an MCP tool is
//! looked up at its `server`. An HTTP tool may be called at its `endpoint` if the server's configuration
//! allows that address. A tool with `capabilities` offers those, else it is one itself (RS-11).

use super::errors;
use super::limits::milliseconds;
use super::reach;
use crate::problem::{Place, Problems};
use crate::tree::Node;
use crate::{Names, suggest};
use std::collections::HashSet;
use turnstone_domain::agent::{Capability, Reached, ToolOrigin, Toolset};
use turnstone_domain::schema::Schema;

pub(super) const RULE: &str = "OSSA-tools";

/// The tools of a manifest.
#[derive(Default)]
pub(super) struct Tools {
    /// Individual tools, in document order.
    pub(super) capabilities: Vec<Capability>,
    /// All tools of a server.
    pub(super) toolsets: Vec<Toolset>,
}

/// Reads the tools in document order. `longest_ms` bounds the calls of tools without a time of their own (RS-42).
pub(super) fn read(
    root: &Node,
    names: Option<&Names<'_>>,
    longest_ms: Option<u64>,
    problems: &mut Problems,
) -> Tools {
    let mut tools = Tools::default();
    let mut seen = HashSet::new();
    let listed = root.at_path(&["spec", "tools"]).map(Node::items).unwrap_or_default();
    for (tool, tool_index) in listed.iter().zip(0_u32..) {
        check_tool(tool, problems);
        let reached = reach::read(tool, names, problems);
        let origin = Some(ToolOrigin { tool_index, reached: reached.clone() });
        if let (Reached::Mcp { server }, true) = (&reached, reach::means_all(tool)) {
            let timeout_ms = tool.get("timeout_ms").and_then(Node::integer);
            let like = capability(&format!("{server}.*"), (tool, tool), timeout_ms, problems);
            let timeout_ms = like.timeout_ms.or(longest_ms);
            let like = Capability { origin, timeout_ms, parallel: errors::parallel(tool), ..like };
            tools.toolsets.push(Toolset { server: server.clone(), like });
            continue;
        }
        for (at, mut capability) in offered(tool, problems) {
            capability.parallel = errors::parallel(tool);
            capability.timeout_ms = capability.timeout_ms.or(longest_ms);
            capability.origin.clone_from(&origin);
            check_name(at, &capability.name, &reached, names, problems);
            check_address(at, &capability, &reached, names, problems);
            if seen.insert(capability.name.clone()) {
                tools.capabilities.push(capability);
            } else {
                problems.error(
                    at,
                    RULE,
                    format!("the tool `{}` is there twice; remove one", capability.name),
                );
            }
        }
    }
    tools
}

fn check_tool(tool: &Node, problems: &mut Problems) {
    let has = |key: &str| tool.get(key).is_some();
    if !has("type") && !has("source") {
        problems.error(tool.at, RULE, "a tool needs a `type`, for example `type: http`");
    }
    if tool.at_path(&["source", "type"]).and_then(Node::text) == Some("delegation") {
        let message =
            "this tool is another agent; name it in `spec.collaboration.delegation.allowed_agents` instead";
        problems.error(tool.at, "OAS-10", message);
    }
    errors::unknown_codes(tool, problems);
    reach::refuse_literal_secrets(tool, problems);
    let named = has("name") || tool.get("capabilities").is_some_and(|list| !list.items().is_empty());
    if !named && !reach::means_all(tool) {
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
            let timeout = timeout.or_else(|| tool.get("timeout_ms").and_then(Node::integer));
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
    let mut schema = |key: &str| {
        let at = node.get(key)?;
        let schema = at.to_json();
        if let Err(e) = Schema::compile(&schema) {
            problems.error(at.at, RULE, format!("`{key}` of `{name}`: {e}"));
        }
        Some(schema)
    };
    let (input_schema, output_schema) = (schema("input_schema"), schema("output_schema"));
    Capability {
        description: node.get("description").and_then(Node::text).map(str::to_owned),
        input_schema,
        output_schema,
        timeout_ms: timeout_ms.and_then(|ms| u64::try_from(ms).ok()),
        errors: errors::of_capability(tool, node),
        version: node.get("version").and_then(Node::text).map(str::to_owned),
        ..Capability::named(name)
    }
}

/// Warns about an address that workers with the settings of this server do not call.
fn check_address(
    at: Place,
    capability: &Capability,
    reached: &Reached,
    names: Option<&Names<'_>>,
    problems: &mut Problems,
) {
    let name = capability.name.as_str();
    let Some(names) = names.filter(|names| !names.tools.contains(&name)) else { return };
    let Some(addresses) = names.reach.and_then(|reach| reach.addresses.as_deref()) else { return };
    let checked = match reached {
        Reached::Http(endpoint) if reach::is_url(&endpoint.url) => addresses.check_tool(capability, endpoint),
        Reached::Mcp { server } if reach::is_url(server) && !names.servers.contains(&server.as_str()) => {
            addresses.check_address(server)
        }
        _ => Ok(()),
    };
    if let Err(why) = checked {
        let show = crate::shape::shortened(name);
        let message = format!("the agent runs without `{show}` with this server's settings: {why}");
        problems.warning(at, RULE, message);
    }
}

fn check_name(at: Place, name: &str, reached: &Reached, names: Option<&Names<'_>>, problems: &mut Problems) {
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
    if names.may_have_tool(name) {
        return;
    }
    match reached {
        Reached::Registry => {}
        // Only a turn that needs the tool finds out if a server or an address has it (RS-14).
        Reached::Mcp { .. } | Reached::Http(_) => return,
        Reached::Unserved { kind } => {
            let message = format!(
                "tools of type `{kind}` are not served: the agent runs without `{show}` unless the registry of this server \
                 has a tool of that name"
            );
            problems.warning(at, RULE, message);
            return;
        }
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
