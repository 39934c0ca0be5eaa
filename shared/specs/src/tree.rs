//! A document as a tree in which every key and value knows its place.
//!
//! The document is read into a tree before it is read into structs, so that one pass can report every
//! problem.

use crate::problem::{Place, Problems};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Error, Location, Options, Spanned, UserMessageFormatter};
use std::fmt;

/// The limits of a document that is read.
pub(crate) struct Limits {
    bytes: usize,
    depth: usize,
    values: usize,
}

/// The limits of a document that describes one agent.
pub(crate) const ORDINARY: Limits = Limits { bytes: 1024 * 1024, depth: 32, values: 20_000 };

/// The limits of a document that holds all components of an agent, as those of Agent Spec do.
pub(crate) const LARGE: Limits = Limits { bytes: 4 * 1024 * 1024, depth: 64, values: 200_000 };

/// The rule of a document with the character U+0000.
pub const NUL_RULE: &str = "NUL";

const NUL: &str = "the document must not contain the character U+0000 (NUL): no text with it can be stored";

const MAX_ALIASES: usize = 100;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Place,
    pub(crate) content: Content,
}

/// The content of a value. Text in quotes is never a number or a boolean.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Null,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key, its place, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Place,
    pub(crate) value: Node,
}

impl Node {
    /// Returns the value of a key. For a duplicate key, which is an error, it is the first value.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Returns the value at the end of a path of keys.
    pub(crate) fn at_path(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Returns keys and values in document order; none for anything but a map.
    pub(crate) fn entries(&self) -> &[Entry] {
        if let Content::Map(entries) = &self.content { entries } else { &[] }
    }

    /// Returns items in document order; none for anything but a list.
    pub(crate) fn items(&self) -> &[Self] {
        if let Content::List(items) = &self.content { items } else { &[] }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Content::Text(text) = &self.content { Some(text) } else { None }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        if let Content::Flag(flag) = self.content { Some(flag) } else { None }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        if let Content::Integer(number) = self.content { Some(number) } else { None }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self.content {
            Content::Integer(number) => Some(number as f64),
            Content::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.content, Content::Null)
    }

    /// Returns the value as JSON.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.content {
            Content::Null => Value::Null,
            Content::Flag(flag) => Value::Bool(*flag),
            Content::Integer(number) => Value::from(*number),
            Content::Number(number) => Value::from(*number),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Content::Map(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
            ),
        }
    }
}

/// Reads one document: YAML, or JSON, which YAML contains.
///
/// Duplicate keys are reported and kept, so that the rest is still checked (OAS-A19).
pub(crate) fn parse(source: &str, problems: &mut Problems) -> Option<Node> {
    parse_within(source, &ORDINARY, problems)
}

/// Reads one document within the limits.
pub(crate) fn parse_within(source: &str, limits: &Limits, problems: &mut Problems) -> Option<Node> {
    if source.len() > limits.bytes {
        let message = format!("the document has {} bytes; at most {} are read", source.len(), limits.bytes);
        problems.error(Place::default(), "OAS-A19", message);
        return None;
    }
    if let Some(before) = source.find('\0') {
        let line = source[..before].matches('\n').count() + 1;
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        problems.error(Place { line, column: 1 }, NUL_RULE, NUL);
        return None;
    }
    match serde_saphyr::from_str_with_options::<Node>(source, options(limits)) {
        Ok(root) => {
            report_twice(&root, problems);
            report_nul(&root, problems);
            Some(root)
        }
        Err(e) => {
            let at = e.location().map(place).unwrap_or_default();
            let (rule, message) = describe(&e, limits);
            problems.error(at, rule, message);
            None
        }
    }
}

fn options(limits: &Limits) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: limits.depth,
            flow_nesting_limit: limits.depth,
            max_nodes: limits.values,
            max_events: limits.values * 4,
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_merge_keys: MAX_ALIASES,
            max_documents: 2,
            max_recorded_anchor_events: limits.values * 4,
            max_recorded_anchor_bytes: limits.bytes * 4,
            max_total_scalar_bytes: limits.bytes,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: limits.values },
        // This module reports them itself, each at its place.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        reject_unsupported_tags: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        // A snippet would show the text around the problem, which may be a secret.
        with_snippet: false,
    }
}

fn describe(error: &Error, limits: &Limits) -> (&'static str, String) {
    match error {
        Error::MultipleDocuments { .. } => {
            ("OAS-A19", "a second document begins here; write one agent per file".to_owned())
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            "OAS-A19",
            format!(
                "the document is too large: at most {} values, {} levels and {MAX_ALIASES} aliases are read, and what an \
                 alias repeats counts too",
                limits.values, limits.depth
            ),
        ),
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => describe(error, limits),
        Error::Eof { .. } => ("YAML", "the document is empty".to_owned()),
        other => {
            let message = other.render_with_formatter(&UserMessageFormatter);
            // The place is reported beside the message.
            let message = message.split(" at line ").next().unwrap_or_default();
            if message.contains("recursion limit") {
                return ("OAS-A19", format!("the document nests deeper than {} levels", limits.depth));
            }
            ("YAML", format!("not readable as YAML: {message}"))
        }
    }
}

/// Reports texts with the character U+0000, which a document in YAML or JSON can escape.
fn report_nul(node: &Node, problems: &mut Problems) {
    if node.text().is_some_and(|text| text.contains('\0')) {
        problems.error(node.at, NUL_RULE, NUL);
    }
    for entry in node.entries() {
        if entry.key.contains('\0') {
            problems.error(entry.at, NUL_RULE, NUL);
        }
        report_nul(&entry.value, problems);
    }
    node.items().iter().for_each(|item| report_nul(item, problems));
}

fn report_twice(node: &Node, problems: &mut Problems) {
    let mut seen = std::collections::HashMap::new();
    for entry in node.entries() {
        if let Some(first) = seen.insert(entry.key.as_str(), entry.at) {
            let message = format!(
                "`{}` is there twice, first at line {}; remove one, since the two could disagree",
                entry.key, first.line
            );
            problems.error(entry.at, "OAS-A19", message);
        }
        report_twice(&entry.value, problems);
    }
    node.items().iter().for_each(|item| report_twice(item, problems));
}

fn place(at: Location) -> Place {
    let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Place { line: short(at.line()), column: short(at.column()) }
}

fn place_of<T>(spanned: &Spanned<T>) -> Place {
    let at = place(spanned.referenced);
    if at.line > 0 { at } else { place(spanned.defined) }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self { at: place_of(&spanned), content: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Content, E> {
        Ok(Content::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Content, E> {
        Ok(Content::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Content, E> {
        Ok(i64::try_from(number).map_or(Content::Number(number as f64), Content::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Content, E> {
        Ok(Content::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let at = place_of(&key);
            entries.push(Entry { key: key.value, at, value: map.next_value()? });
        }
        Ok(Content::Map(entries))
    }
}
