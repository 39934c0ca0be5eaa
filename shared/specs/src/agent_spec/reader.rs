//! Reads components: each one once, however often the document refers to it.

use super::class::{ABSTRACT, Class, Family, Field, Io, Kind};
use super::component::{Component, Declared, Filter, Held};
use super::property::Property;
use super::registry::Registry;
use super::rules;
use super::rules::signature::MAX_LISTED;
use super::secret::Secret;
use super::survey::{REFERENCE, REFERENCED, Survey};
use super::version::Version;
use crate::problem::{Place, Problems};
use crate::shape::{self, Shape, shortened};
use crate::suggest;
use crate::tree::{Content, Entry, Node};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The most components of a document.
pub(super) const MAX_COMPONENTS: usize = 20_000;
/// The deepest nesting of components, references followed.
pub(super) const MAX_NESTING: usize = 64;

/// The most values that may be copied to replace references in plain values.
const MAX_COPIED: usize = 200_000;

/// The most unknown keys of a component that are reported.
const MAX_UNKNOWN: usize = 20;
/// The most values of all signatures together: a node repeats the signature of what it holds.
const MAX_SIGNATURES: usize = 1_000_000;

/// Keys that any component may have.
const COMMON: [&str; 8] = [
    "component_type",
    "id",
    "name",
    "description",
    "metadata",
    "agentspec_version",
    "air_version",
    REFERENCED,
];

pub(super) struct Reader<'a, 'p> {
    survey: Survey<'a>,
    registry: &'a Registry,
    components: HashMap<usize, State>,
    depth: usize,
    unnamed: usize,
    /// The ids of the components that came from the registry.
    registered: HashSet<String>,
    /// The number of references to no component, which the survey reported.
    lost: usize,
    /// The values of all signatures.
    signatures: usize,
    /// The count of values that were copied to replace references in plain values.
    copied: usize,
    problems: &'p mut Problems,
}

enum State {
    Reading,
    Read(Option<Arc<Component>>),
}

impl<'a, 'p> Reader<'a, 'p> {
    pub(super) fn new(root: &'a Node, registry: &'a Registry, problems: &'p mut Problems) -> Self {
        let survey = Survey::of(root, registry, problems);
        Self {
            survey,
            registry,
            components: HashMap::new(),
            depth: 0,
            unnamed: 0,
            registered: HashSet::new(),
            lost: 0,
            signatures: 0,
            copied: 0,
            problems,
        }
    }

    /// Reads the component at a place that accepts a family.
    pub(super) fn component(&mut self, node: &'a Node, family: Family, what: &str) -> Option<Arc<Component>> {
        let target = self.resolve(node)?;
        let component = self.once(target, node.at, what)?;
        if component.class.is(family) {
            return Some(component);
        }
        let message =
            format!("{what} must be a component of the kind {family:?}, and {} is none", component.shown());
        self.problems.error(node.at, "AS-15", message);
        None
    }

    /// Reads a component the first time, and returns it from then on.
    fn once(&mut self, target: &'a Node, used_at: Place, what: &str) -> Option<Arc<Component>> {
        let key = std::ptr::from_ref(target).addr();
        match self.components.get(&key) {
            Some(State::Read(component)) => return component.clone(),
            Some(State::Reading) => {
                let message = format!("{what} refers to a component that holds it: references form a circle");
                self.problems.error(used_at, "AS-14", message);
                return None;
            }
            None => {}
        }
        if self.depth == MAX_NESTING {
            let message = format!("{what} nests deeper than {MAX_NESTING} components; use fewer levels");
            self.problems.error(used_at, "AS-17", message);
            return None;
        }
        if self.components.len() == MAX_COMPONENTS {
            let message = format!("the document has more than {MAX_COMPONENTS} components; split it");
            self.problems.error(Place::default(), "AS-17", message);
            return None;
        }
        if self.signatures > MAX_SIGNATURES {
            self.lost += 1;
            let message = "inputs and outputs repeat too many values; write smaller or fewer ones";
            self.problems.error(Place::default(), "AS-17", message);
            return None;
        }
        self.components.insert(key, State::Reading);
        self.depth += 1;
        let component = self.first(target, what).map(Arc::new);
        self.depth -= 1;
        self.components.insert(key, State::Read(component.clone()));
        component
    }

    fn first(&mut self, node: &'a Node, what: &str) -> Option<Component> {
        if !matches!(node.content, Content::Map(_)) {
            let message = format!("{what} must be a component, which is a map, or a reference to one");
            self.problems.error(node.at, "AS-15", message);
            return None;
        }
        let class = self.class(node, what)?;
        let before = (self.problems.errors(), self.lost);
        let mut component = self.common(node, class);
        self.unknown_keys(node, &component);
        if component.at == Place::default() {
            self.check_registered(&component);
        }
        for field in class.fields() {
            if let Some(entry) = node.entries().iter().find(|entry| entry.key == field.name) {
                component.places.insert(field.name, entry.value.at);
                if let Some(held) = self.field(field, &entry.value, &component) {
                    component.held.insert(field.name, held);
                }
            } else if field.required {
                let message = format!("{} lacks `{}`, which is required", component.shown(), field.name);
                self.problems.error(node.at, "AS-05", message);
            }
        }
        if class.io != Io::None {
            self.signature(node, &mut component);
        }
        component.is_whole = (self.problems.errors(), self.lost) == before;
        rules::settle(&mut component, self.problems);
        let signature = component.inputs.iter().chain(&component.outputs);
        self.signatures += signature.map(|property| values_in(&property.schema)).sum::<usize>();
        component.is_whole = (self.problems.errors(), self.lost) == before;
        Some(component)
    }

    /// Checks that a component of the registry has an id that no other component has (AS-12).
    fn check_registered(&mut self, component: &Component) {
        if self.survey.has_id(&component.id) || !self.registered.insert(component.id.clone()) {
            let message = format!(
                "the id of {} from the registry, `{}`, is taken by another component",
                component.shown(),
                shortened(&component.id)
            );
            self.problems.error(component.at, "AS-12", message);
        }
    }

    /// Returns the class of a component (AS-01, AS-02, AS-03).
    fn class(&mut self, node: &'a Node, what: &str) -> Option<&'static Class> {
        let Some(said) = node.get("component_type") else {
            let mut message = format!("{what} has no `component_type`");
            if node.get("type").is_some() || node.get("$ref").is_some() {
                message.push_str("; `type` and `$ref` are not of a published version");
            }
            self.problems.error(node.at, "AS-01", message);
            return None;
        };
        let Some(name) = said.text() else {
            self.problems.error(said.at, "AS-01", "`component_type` must be the name of a class");
            return None;
        };
        if let Some(plugin) = node.get("component_plugin_name").and_then(Node::text) {
            let message = format!(
                "`{}` is a component of the plugin `{}`; components of plugins cannot be used",
                shortened(name),
                shortened(plugin)
            );
            self.problems.error(said.at, "AS-02", message);
            return None;
        }
        let class = Class::of(name);
        if class.is_none() {
            let (rule, message) = match ABSTRACT.contains(&name) {
                true => ("AS-03", format!("`{name}` is a family of components; name a component of it")),
                false => {
                    let hint = suggest::hint(name, Class::names());
                    ("AS-01", format!("there is no component `{}`{hint}", shortened(name)))
                }
            };
            self.problems.error(said.at, rule, message);
        }
        class
    }

    /// Reads the fields of every component (AS-04).
    fn common(&mut self, node: &'a Node, class: &'static Class) -> Component {
        let name = self.common_text(node, "name", class);
        if name.is_none() && node.get("name").is_none() {
            self.problems.error(node.at, "AS-04", format!("this {} has no `name`", class.name));
        }
        let id = self.common_text(node, "id", class).unwrap_or_else(|| self.new_id(class));
        let description = match node.get("description") {
            Some(said) if !said.is_null() => self.common_text(node, "description", class),
            _ => None,
        };
        let metadata = node.get("metadata").map_or(Value::Null, Node::to_json);
        if !matches!(metadata, Value::Object(_) | Value::Null) {
            self.problems.error(node.at, "AS-04", format!("`metadata` of this {} must be a map", class.name));
        }
        Component {
            class,
            at: node.at,
            id,
            name: name.unwrap_or_default(),
            description,
            metadata,
            held: HashMap::new(),
            places: HashMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            branches: Vec::new(),
            declared: Declared::default(),
            bound: (Version::V25_4_1, String::new()),
            is_whole: true,
        }
    }

    fn common_text(&mut self, node: &'a Node, key: &str, class: &Class) -> Option<String> {
        let said = node.get(key)?;
        if said.is_null() && key == "id" {
            return None;
        }
        let text = said.text().map(str::to_owned);
        if text.is_none() {
            self.problems.error(said.at, "AS-04", format!("`{key}` of this {} must be a text", class.name));
        }
        text
    }

    /// Returns an id for a component that has none; the same document yields the same ids.
    fn new_id(&mut self, class: &Class) -> String {
        loop {
            self.unnamed += 1;
            let id = format!("{}_{}", class.name, self.unnamed);
            if !self.survey.has_id(&id) {
                return id;
            }
        }
    }

    /// Warns about unknown keys, because they have no effect (AS-07).
    fn unknown_keys(&mut self, node: &'a Node, component: &Component) {
        let class = component.class;
        let own: &[&str] = match class.io {
            Io::None => &[],
            Io::Properties => &["inputs", "outputs"],
            Io::Node => &["inputs", "outputs", "branches"],
        };
        let mut unknown = 0_usize;
        for entry in node.entries() {
            let key = entry.key.as_str();
            let known = || class.fields().map(|field| field.name).chain(own.iter().copied());
            if !COMMON.contains(&key) && !known().any(|name| name == key) {
                unknown += 1;
                if unknown > MAX_UNKNOWN {
                    break;
                }
                let hint = suggest::hint(key, known());
                let message = format!(
                    "{} has no field `{}`; it has no effect{hint}",
                    component.shown(),
                    shortened(key)
                );
                self.problems.warning(entry.at, "AS-07", message);
            }
        }
    }

    fn field(&mut self, field: &'static Field, node: &'a Node, component: &Component) -> Option<Held> {
        let what = format!("`{}` of {}", field.name, component.shown());
        if let Kind::Secret(shape) = &field.kind {
            return self.secret(shape, node, field, &what).map(Held::Secret);
        }
        let target = self.resolve(node)?;
        if target.is_null() && field.nullable {
            return Some(Held::Plain(Value::Null));
        }
        match &field.kind {
            Kind::Plain(shape) => self.plain(shape, target, &what).map(Held::Plain),
            Kind::Entities => {
                let value = self.plain(&Shape::Table(&Shape::Any), target, &what)?;
                Some(Held::Plain(value))
            }
            Kind::One(family) => self.component(node, *family, &what).map(Held::One),
            Kind::Many(family) => {
                let items = self.items(target, &what)?;
                let read = |(at, item): (usize, &'a Node)| {
                    self.component(item, *family, &format!("{what}, item {at},"))
                };
                Some(Held::Many(items.iter().enumerate().filter_map(read).collect()))
            }
            Kind::Pairs(family) => self.pairs(target, *family, &what),
            Kind::ToolFilter => self.filter(target, &what),
            Kind::Secret(_) => None,
        }
    }

    fn items(&mut self, node: &'a Node, what: &str) -> Option<&'a [Node]> {
        if let Content::List(items) = &node.content {
            return Some(items);
        }
        self.problems.error(node.at, "AS-06", format!("{what} must be a list"));
        None
    }

    fn pairs(&mut self, node: &'a Node, family: Family, what: &str) -> Option<Held> {
        let mut pairs = Vec::new();
        for (at, item) in self.items(node, what)?.iter().enumerate() {
            let what = format!("{what}, item {at},");
            match self.items(item, &what)? {
                [from, to] => {
                    let from = self.component(from, family, &what);
                    let to = self.component(to, family, &what);
                    pairs.extend(from.zip(to));
                }
                _ => self.problems.error(
                    item.at,
                    "AS-06",
                    format!("{what} must be a pair: [caller, recipient]"),
                ),
            }
        }
        Some(Held::Pairs(pairs))
    }

    fn filter(&mut self, node: &'a Node, what: &str) -> Option<Held> {
        let mut entries = Vec::new();
        for item in self.items(node, what)? {
            match self.resolve(item)?.text() {
                Some(name) => entries.push(Filter::Name(name.to_owned())),
                None => entries.extend(self.component(item, Family::MCPToolSpec, what).map(Filter::Spec)),
            }
        }
        Some(Held::Filter(entries))
    }

    /// Reads a plain value, and replaces references in it by the values that they refer to.
    fn plain(&mut self, shape: &Shape, node: &'a Node, what: &str) -> Option<Value> {
        let node = self.expanded(node, 0)?;
        let plain = what.replace('`', "");
        shape::check(&node, shape, &plain, "AS-06", self.problems);
        Some(node.to_json())
    }

    /// Reads a sensitive value: a reference, which may stay unresolved, or a value, which is never shown (AS-18).
    fn secret(&mut self, shape: &Shape, node: &'a Node, field: &Field, what: &str) -> Option<Secret> {
        if let Some(id) = node.get(REFERENCE) {
            let id = id.text()?.to_owned();
            let known = self.survey.definitions.contains_key(id.as_str()) || self.registry.get(&id).is_some();
            let value = if known {
                let target = self.resolve(node)?;
                Some(self.plain(shape, target, what)?)
            } else {
                None
            };
            return Some(Secret::referenced(id, value));
        }
        let is_empty = match &node.content {
            Content::Null => field.nullable || !field.required,
            Content::Text(text) => text.is_empty(),
            Content::Map(entries) => entries.is_empty(),
            _ => false,
        };
        if is_empty && !field.required {
            return None;
        }
        let value = self.plain(shape, node, what)?;
        let message = format!(
            "{what} is a secret in the document; write `{{\"$component_ref\": \"<component id>.{}\"}}` and keep the value \
             in a registry",
            field.name
        );
        self.problems.warning(node.at, "AS-18", message);
        Some(Secret::inlined(value))
    }

    /// Reads inputs, outputs and branches as the document declares them.
    fn signature(&mut self, node: &'a Node, component: &mut Component) {
        if let Some(properties) = self.properties(node, "inputs", component) {
            component.inputs = properties;
            component.declared.inputs = true;
        }
        if let Some(properties) = self.properties(node, "outputs", component) {
            component.outputs = properties;
            component.declared.outputs = true;
        }
        if component.class.io == Io::Node
            && let Some(said) = node.get("branches").filter(|said| !said.is_null())
        {
            component.places.insert("branches", said.at);
            let what = format!("`branches` of {}", component.shown());
            if let Some(value) = self.plain(&Shape::List(&Shape::Text), said, &what) {
                let names = value.as_array().into_iter().flatten();
                component.branches = names.filter_map(Value::as_str).map(str::to_owned).collect();
                component.declared.branches = true;
            }
        }
    }

    fn properties(
        &mut self,
        node: &'a Node,
        key: &'static str,
        component: &mut Component,
    ) -> Option<Vec<Property>> {
        let said = node.get(key).filter(|said| !said.is_null())?;
        component.places.insert(key, said.at);
        let what = format!("`{key}` of {}", component.shown());
        let target = self.resolve(said)?;
        let mut properties: Vec<Property> = Vec::new();
        let items = self.items(target, &what)?;
        if items.len() > MAX_LISTED {
            let message = format!("{what} has {} properties; at most {MAX_LISTED} are read", items.len());
            self.problems.error(said.at, "AS-17", message);
            return None;
        }
        for item in items {
            let Some(schema) = self.expanded(item, 0) else { continue };
            match Property::of(&schema.to_json()) {
                Err((rule, message)) => self.problems.error(item.at, rule, format!("{what}: {message}")),
                Ok(property) if properties.iter().any(|known| known.title == property.title) => {
                    let message = format!("{what} has `{}` twice", shortened(&property.title));
                    self.problems.error(item.at, "AS-25", message);
                }
                Ok(property) => properties.push(property),
            }
        }
        Some(properties)
    }

    /// Follows references (AS-14). The survey has reported each id that no component has.
    fn resolve(&mut self, node: &'a Node) -> Option<&'a Node> {
        let mut target = node;
        for _ in 0..=MAX_NESTING {
            let Some(id) = target.get(REFERENCE) else { return Some(target) };
            let Some(id) = id.text() else {
                self.lost += 1;
                return None;
            };
            target = match self.survey.definitions.get(id) {
                Some(defined) => defined,
                None => {
                    let registered = self.registry.get(id);
                    if registered.is_none() && target.at == Place::default() {
                        let message = format!(
                            "a part of the registry refers to `{}`, which nothing has",
                            shortened(id)
                        );
                        self.problems.error(target.at, "AS-11", message);
                    }
                    if registered.is_none() {
                        self.lost += 1;
                    }
                    registered?
                }
            };
        }
        self.problems.error(node.at, "AS-14", "the reference leads back to itself: references form a circle");
        None
    }

    /// Returns a value in which references are replaced by the values that they refer to.
    fn expanded(&mut self, node: &'a Node, depth: usize) -> Option<Cow<'a, Node>> {
        if depth == MAX_NESTING {
            self.problems.error(node.at, "AS-14", "the value refers to itself, or nests too deep");
            return None;
        }
        let node = self.resolve(node)?;
        if depth > 0 {
            self.copied += size(node);
        }
        if self.copied > MAX_COPIED {
            let message =
                format!("references repeat more than {MAX_COPIED} values; write fewer or smaller ones");
            self.problems.error(Place::default(), "AS-17", message);
            return None;
        }
        if !has_reference(node) {
            return Some(Cow::Borrowed(node));
        }
        let content = match &node.content {
            Content::List(items) => Content::List(
                items
                    .iter()
                    .map(|item| Some(self.expanded(item, depth + 1)?.into_owned()))
                    .collect::<Option<_>>()?,
            ),
            Content::Map(entries) => Content::Map(
                entries
                    .iter()
                    .map(|entry| {
                        let value = self.expanded(&entry.value, depth + 1)?.into_owned();
                        Some(Entry { key: entry.key.clone(), at: entry.at, value })
                    })
                    .collect::<Option<_>>()?,
            ),
            other => other.clone(),
        };
        Some(Cow::Owned(Node { at: node.at, content }))
    }

    /// Checks every component that was read against the version of the document (AS-10).
    pub(super) fn check_version(&mut self, version: Version) {
        for state in self.components.values() {
            let State::Read(Some(component)) = state else { continue };
            let (bound, because) = &component.bound;
            // The parts of a registry have versions of their own.
            if *bound > version && component.at != Place::default() {
                let message = format!(
                    "{} needs `agentspec_version` {} or later because of {because}; the document says {}",
                    component.shown(),
                    bound.as_str(),
                    version.as_str()
                );
                self.problems.error(component.at, "AS-10", message);
            }
        }
    }
}

fn values_in(schema: &Value) -> usize {
    1 + match schema {
        Value::Array(items) => items.iter().map(values_in).sum(),
        Value::Object(map) => map.values().map(values_in).sum(),
        _ => 0_usize,
    }
}

fn size(node: &Node) -> usize {
    let items: usize = node.items().iter().map(size).sum();
    let entries: usize = node.entries().iter().map(|entry| size(&entry.value)).sum();
    1 + items + entries
}

fn has_reference(node: &Node) -> bool {
    node.get(REFERENCE).is_some()
        || node.items().iter().any(has_reference)
        || node.entries().iter().any(|entry| has_reference(&entry.value))
}
