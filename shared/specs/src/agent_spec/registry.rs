//! The values that a document refers to and does not hold: components that it is shared with, and secrets.

use super::survey::REFERENCED;
use crate::problem::{Place, Problem, Problems};
use crate::tree::{self, Content, Entry, Node};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Components and plain values by the id that documents refer to. Its `Debug` shows the ids alone.
#[derive(Clone, Default)]
pub struct Registry {
    values: BTreeMap<String, Node>,
}

impl Registry {
    /// Adds the parts of a disaggregated document: one that holds `$referenced_components` and nothing else.
    ///
    /// # Errors
    /// Every problem of the document's form (AS-16). The parts are checked where a document uses them.
    pub fn with_document(mut self, source: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        if let Some(root) = tree::parse_within(source, &tree::LARGE, &mut problems) {
            check_form(&root, &mut problems);
            for entry in root.get(REFERENCED).map(Node::entries).unwrap_or_default() {
                self.values.insert(entry.key.clone(), displaced(&entry.value));
            }
        }
        if problems.any_error() { Err(problems.in_order()) } else { Ok(self) }
    }

    /// Adds one value: a component as JSON, a text, a number, a map of headers.
    #[must_use]
    pub fn with_value(mut self, id: &str, value: &Value) -> Self {
        self.values.insert(id.to_owned(), node_of(value));
        self
    }

    pub(super) fn get(&self, id: &str) -> Option<&Node> {
        self.values.get(id)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.values.values()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

/// Returns whether a document is a part of others: it holds components and is none.
pub(super) fn is_disaggregated(root: &Node) -> bool {
    root.get(REFERENCED).is_some()
        && root.get("component_type").is_none()
        && root.get(super::survey::REFERENCE).is_none()
}

/// A disaggregated document has one key (AS-16).
pub(super) fn check_form(root: &Node, problems: &mut Problems) {
    if !root.get(REFERENCED).is_some_and(|held| matches!(held.content, Content::Map(_))) {
        let message =
            "a disaggregated document holds one key, `$referenced_components`, a map of ids to components";
        problems.error(root.at, "AS-16", message);
    }
    for entry in root.entries().iter().filter(|entry| entry.key != REFERENCED) {
        let message = format!(
            "`{}` has no place in a disaggregated document, which holds `$referenced_components` alone",
            entry.key
        );
        problems.error(entry.at, "AS-16", message);
    }
}

/// The same value without its place, which is one of another document.
fn displaced(node: &Node) -> Node {
    let content = match &node.content {
        Content::List(items) => Content::List(items.iter().map(displaced).collect()),
        Content::Map(entries) => Content::Map(
            entries
                .iter()
                .map(|entry| Entry {
                    key: entry.key.clone(),
                    at: Place::default(),
                    value: displaced(&entry.value),
                })
                .collect(),
        ),
        other => other.clone(),
    };
    Node { at: Place::default(), content }
}

fn node_of(value: &Value) -> Node {
    let content = match value {
        Value::Null => Content::Null,
        Value::Bool(flag) => Content::Flag(*flag),
        Value::Number(number) => number
            .as_i64()
            .map(Content::Integer)
            .or_else(|| number.as_f64().map(Content::Number))
            // Too large for a float: no field of a number takes a text, so the document is refused.
            .unwrap_or_else(|| Content::Text(number.to_string())),
        Value::String(text) => Content::Text(text.clone()),
        Value::Array(items) => Content::List(items.iter().map(node_of).collect()),
        Value::Object(map) => Content::Map(
            map.iter()
                .map(|(key, value)| Entry { key: key.clone(), at: Place::default(), value: node_of(value) })
                .collect(),
        ),
    };
    Node { at: Place::default(), content }
}
