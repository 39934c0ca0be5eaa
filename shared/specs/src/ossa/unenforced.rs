//! Demands of a manifest that this version does not support.

use crate::problem::Problems;
use crate::tree::{Content, Node};

/// Reports demands that are not enforced: a warning if the agent still does its work, an error if it would do
/// different work.
pub(super) fn report(root: &Node, problems: &mut Problems) {
    let Some(spec) = root.get("spec") else { return };
    for entry in spec.get("safety").map(Node::entries).unwrap_or_default() {
        let enforced = ["content_filtering", "human_in_loop", "pii_detection"].contains(&entry.key.as_str());
        if !enforced && !is_off(&entry.value) {
            let message = format!("`spec.safety.{}` is not enforced yet; do not rely on it", entry.key);
            problems.warning(entry.at, "OSSA-safety", message);
        }
    }
    for (path, rule, effect) in UNENFORCED {
        if let Some(node) = spec.at_path(path).filter(|node| !is_off(node)) {
            problems.warning(node.at, rule, format!("`spec.{}` {effect}", path.join(".")));
        }
    }
    report_words(spec, problems);
}

/// Reports settings whose default is harmless and whose other values are not.
fn report_words(spec: &Node, problems: &mut Problems) {
    let every = spec.at_path(&["autonomy", "approval_required"]).and_then(Node::flag) == Some(true);
    let level = spec.at_path(&["autonomy", "level"]).filter(|node| node.text() == Some("supervised"));
    if let Some(node) = level.filter(|_| !every) {
        let message = "`spec.autonomy.level: supervised` alone asks nobody; `autonomy.approval_required: true` puts every call of a \
                       tool before a person";
        problems.warning(node.at, "OSSA-autonomy", message);
    }
}

const NOT_ENFORCED: &str = "is not enforced yet; do not rely on it";
const NO_EFFECT: &str = "has no effect in this version";

const UNENFORCED: &[(&[&str], &str, &str)] = &[
    (&["autonomy", "allowed_actions"], "OSSA-autonomy", NOT_ENFORCED),
    (&["autonomy", "blocked_actions"], "OSSA-autonomy", NOT_ENFORCED),
    (&["constraints", "max_tokens_per_turn"], "OSSA-constraints", NOT_ENFORCED),
    (&["constraints", "performance", "maxConcurrentRequests"], "OSSA-constraints", NOT_ENFORCED),
    (&["security", "authentication"], "OSSA-security", NOT_ENFORCED),
    (&["security", "authorization"], "OSSA-security", NOT_ENFORCED),
    (&["security", "encryption"], "OSSA-security", NOT_ENFORCED),
    (&["security", "audit"], "OSSA-security", NOT_ENFORCED),
    (&["security", "compliance"], "OSSA-security", NOT_ENFORCED),
    (&["state", "encryption"], "OSSA-state", NOT_ENFORCED),
    (&["state", "storage", "encryption"], "OSSA-state", NOT_ENFORCED),
    (&["knowledge_graph"], "OSSA-knowledge_graph", NO_EFFECT),
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
