//! `spec.safety.content_filtering`, `spec.safety.pii_detection` and `spec.security.output_filtering` (RS-08,
//! RS-23). An absent section filters nothing; a present one has its defaults (RS-A12).

use crate::problem::Problems;
use crate::tree::{Content, Node};
use turnstone_domain::agent::Safety;
use turnstone_domain::agent::safety::{
    Category, ContentRule, FilterAction, PersonalKind, PersonalRule, Threshold,
};

/// Reads the sections.
pub(super) fn read(spec: &Node, problems: &mut Problems) -> Safety {
    let requested = |path: &[&str]| spec.at_path(path).filter(|node| is_asked(node));
    let audited = spec.at_path(&["security", "audit", "pii_redaction"]).and_then(Node::flag) == Some(true);
    let everything = || PersonalRule { kinds: PersonalKind::ALL.to_vec(), action: FilterAction::Redact };
    Safety {
        content: requested(&["safety", "content_filtering"]).map(content),
        personal: requested(&["safety", "pii_detection"]).map(|node| personal(node, problems)),
        output: requested(&["security", "output_filtering"])
            .map(|node| personal(node, problems))
            .or_else(|| audited.then(everything)),
    }
}

fn is_asked(node: &Node) -> bool {
    match &node.content {
        Content::Null | Content::Flag(false) => false,
        Content::Text(text) => !["none", "off", "disabled"].contains(&text.as_str()),
        _ => node.get("enabled").and_then(Node::flag) != Some(false),
    }
}

fn content(node: &Node) -> ContentRule {
    let named = node.get("categories").map(Node::items).unwrap_or_default();
    let named = |category: &Category| named.iter().any(|node| node.text() == Some(category.as_str()));
    // Personal data has a section of its own, so it counts here only when it is named.
    let all = node.get("categories").is_none();
    let categories =
        Category::ALL.into_iter().filter(|one| if all { *one != Category::Pii } else { named(one) });
    ContentRule {
        categories: categories.collect(),
        threshold: match node.get("threshold").and_then(Node::text) {
            Some("low") => Threshold::Low,
            Some("high") => Threshold::High,
            _ => Threshold::Medium,
        },
        action: action(node).unwrap_or(FilterAction::Block),
    }
}

fn personal(node: &Node, problems: &mut Problems) -> PersonalRule {
    let list = node.get("types");
    let named = list.map(Node::items).unwrap_or_default();
    for node in named.iter().filter(|node| matches!(node.text(), Some("name" | "address"))) {
        let message = format!(
            "`{}` cannot be detected: it has no form to recognise it by; remove it",
            node.text().unwrap_or_default()
        );
        problems.error(node.at, "OSSA-safety", message);
    }
    let requested =
        |kind: &PersonalKind| list.is_none() || named.iter().any(|node| node.text() == Some(kind.as_str()));
    PersonalRule {
        kinds: PersonalKind::ALL.into_iter().filter(requested).collect(),
        action: action(node).unwrap_or(FilterAction::Redact),
    }
}

fn action(node: &Node) -> Option<FilterAction> {
    match node.text().or_else(|| node.get("action")?.text())? {
        "redact" => Some(FilterAction::Redact),
        "block" => Some(FilterAction::Block),
        "warn" => Some(FilterAction::Warn),
        "log" => Some(FilterAction::Log),
        _ => None,
    }
}
