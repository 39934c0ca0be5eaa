//! Demands of a manifest that this version does not support.

use crate::problem::Problems;
use crate::tree::{Content, Node};

/// Reports demands that are not enforced: an error if an author could rely on it for safety or security, else a
/// warning.
pub(super) fn report(root: &Node, problems: &mut Problems) {
    let Some(spec) = root.get("spec") else { return };
    for (path, rule, instead) in REFUSED {
        if let Some(node) = spec.at_path(path).filter(|node| !is_off(node)) {
            let message =
                format!("`spec.{}` cannot be enforced here; remove it, and {instead}", path.join("."));
            problems.error(node.at, rule, message);
        }
    }
    for (path, rule) in IGNORED {
        if let Some(node) = spec.at_path(path).filter(|node| !is_off(node)) {
            problems.warning(
                node.at,
                rule,
                format!("`spec.{}` has no effect in this version", path.join(".")),
            );
        }
    }
    report_tools(spec, problems);
    report_telemetry(spec, problems);
    report_words(spec, problems);
}

/// Reports settings of telemetry, which belong to the operator.
fn report_telemetry(spec: &Node, problems: &mut Problems) {
    for section in ["tracing", "metrics", "logging"] {
        for entry in spec.at_path(&["observability", section]).map(Node::entries).unwrap_or_default() {
            if entry.key != "enabled" || entry.value.flag() != Some(true) {
                let message = format!(
                    "`spec.observability.{section}.{}` has no effect in this version: the operator configures telemetry",
                    crate::shape::shortened(&entry.key)
                );
                problems.warning(entry.at, "OSSA-observability", message);
            }
        }
    }
}

/// Returns the members of a capability that have no effect.
fn of_capability(node: &Node) -> [(&'static str, Option<&Node>); 2] {
    ["caching", "scopes"].map(|name| (name, node.get(name)))
}

/// Reports members of tools and their capabilities that have no effect.
fn report_tools(spec: &Node, problems: &mut Problems) {
    for tool in spec.get("tools").map(Node::items).unwrap_or_default() {
        let own = tool.get("capabilities").map(Node::items).unwrap_or_default();
        let members = own.iter().flat_map(of_capability);
        let health = ("health_check", tool.get("health_check"));
        let rate = ("transport.rateLimit", tool.at_path(&["transport", "rateLimit"]));
        let source =
            tool.get("source").filter(|node| node.get("type").and_then(Node::text) != Some("delegation"));
        for (name, node) in members.chain([("source", source), health, rate]) {
            if let Some(node) = node.filter(|node| !is_off(node)) {
                problems.warning(
                    node.at,
                    "OSSA-tools",
                    format!("`{name}` of a tool has no effect in this version"),
                );
            }
        }
    }
}

/// Reports settings whose default is harmless and whose other values are not.
fn report_words(spec: &Node, problems: &mut Problems) {
    let every = spec.at_path(&["autonomy", "approval_required"]).and_then(Node::flag) == Some(true);
    let strategy = spec.at_path(&["reasoning", "strategy"]).filter(|node| node.text() != Some("react"));
    if let Some(node) = strategy {
        let message =
            "`spec.reasoning.strategy` has no effect in this version: every agent works as with `react`";
        problems.warning(node.at, "OSSA-reasoning", message);
    }
    let level = spec.at_path(&["autonomy", "level"]).filter(|node| node.text() == Some("supervised"));
    if let Some(node) = level.filter(|_| !every) {
        let message = "`spec.autonomy.level: supervised` alone asks no person; `autonomy.approval_required: true` puts every call of a \
                       tool before a person";
        problems.warning(node.at, "OSSA-autonomy", message);
    }
}

/// Members that are refused, and what to do instead.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (
        &["constraints", "performance", "maxConcurrentRequests"],
        "OSSA-constraints",
        "set the concurrency of the agent's queue instead",
    ),
    (&["safety", "rate_limiting"], "OSSA-safety", "set a rate limit for the tenant or the queue instead"),
    (
        &["safety", "guardrails", "policies"],
        "OSSA-safety",
        "set `content_filtering`, `blocked_actions` and `approval_required` instead",
    ),
    (
        &["safety", "guardrails", "max_tool_calls"],
        "OSSA-safety",
        "set `turn_chain.max_tool_turns` or `reasoning.max_steps` instead",
    ),
    (&["security", "authentication"], "OSSA-security", "configure the API keys of the server instead"),
    (&["security", "authorization"], "OSSA-security", "configure the API keys of the server instead"),
    (
        &["security", "encryption"],
        "OSSA-security",
        "configure TLS and the encryption keys of the server instead",
    ),
    (
        &["security", "secrets"],
        "OSSA-security",
        "store the credentials with `turnstone credential set` instead",
    ),
    (
        &["security", "audit", "log_level"],
        "OSSA-security",
        "read the audit of the engagement, which has every detail",
    ),
    (
        &["security", "audit", "retention_days"],
        "OSSA-security",
        "set `state.storage.retention` or the queue's retention instead",
    ),
    (&["compliance"], "OSSA-security", "bound where the server and its providers run instead"),
    (&["triggers"], "OSSA-spec", "start the agent by a schedule of the server, or by a request, instead"),
    (&["security", "compliance"], "OSSA-security", "bound where the server and its providers run instead"),
    (&["state", "encryption"], "OSSA-state", "configure the encryption keys of the server instead"),
    (
        &["state", "storage", "encryption"],
        "OSSA-state",
        "configure the encryption keys of the server instead",
    ),
];

/// Members that are accepted and have no effect.
const IGNORED: &[(&[&str], &str)] = &[
    (&["constraints", "performance", "maxLatencySeconds"], "OSSA-constraints"),
    (&["constraints", "resources"], "OSSA-constraints"),
    (&["knowledge_graph"], "OSSA-knowledge_graph"),
    (&["observability", "alerting"], "OSSA-observability"),
    (&["observability", "slo"], "OSSA-observability"),
    (&["reasoning", "max_depth"], "OSSA-reasoning"),
    (&["reasoning", "trace_enabled"], "OSSA-reasoning"),
    (&["reasoning", "export_format"], "OSSA-reasoning"),
    (&["reasoning", "self_reflection"], "OSSA-reasoning"),
    (&["reliability", "fallback"], "OSSA-reliability"),
    (&["messaging"], "OSSA-spec"),
];

/// Returns true if a value demands nothing: `false`, an empty list or map, or a section with
/// `enabled: false`.
fn is_off(node: &Node) -> bool {
    match &node.content {
        Content::Null | Content::Flag(false) => true,
        Content::List(items) => items.is_empty(),
        Content::Map(entries) => {
            entries.is_empty() || node.get("enabled").and_then(Node::flag) == Some(false)
        }
        _ => false,
    }
}
