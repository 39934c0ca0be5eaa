//! The canonical document of a specification: JSON that other runtimes load, with secrets as references.

use super::class::Io;
use super::component::{Component, Filter, Held};
use super::property::Property;
use super::survey::{REFERENCE, REFERENCED};
use super::version::Version;
use super::{Specification, secret::Secret};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns the document: the component itself, what it uses more than once under `$referenced_components`, and the first
/// version that has everything it uses. Fields that came later are left out; they have their defaults.
#[must_use]
pub fn export(specification: &Specification) -> Value {
    let root = &specification.root;
    let all = components(root);
    let version = all.iter().map(|component| component.bound.0).max().unwrap_or(Version::V25_4_1);
    let writer = Writer { version, shared: shared(root) };
    let mut document = writer.component(root);
    let mut referenced = Map::new();
    for component in all.iter().filter(|component| writer.shared.contains(component.id.as_str())) {
        referenced.insert(component.id.clone(), Value::Object(writer.component(component)));
    }
    if !referenced.is_empty() {
        document.insert(REFERENCED.to_owned(), Value::Object(referenced));
    }
    document.insert("agentspec_version".to_owned(), json!(version.as_str()));
    Value::Object(document)
}

/// All components, each one once, in the order of their first use.
fn components(root: &Arc<Component>) -> Vec<&Arc<Component>> {
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    let mut waiting = vec![root];
    while let Some(component) = waiting.pop() {
        if seen.insert(component.id.as_str()) {
            all.push(component);
            waiting.extend(component.children().into_iter().rev());
        }
    }
    all
}

/// The ids that are used more than once: they are written once, as references elsewhere.
fn shared(root: &Arc<Component>) -> HashSet<&str> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for component in components(root) {
        for child in component.children() {
            *uses.entry(child.id.as_str()).or_default() += 1;
        }
    }
    uses.into_iter().filter(|(_, uses)| *uses > 1).map(|(id, _)| id).collect()
}

struct Writer<'a> {
    version: Version,
    shared: HashSet<&'a str>,
}

impl Writer<'_> {
    fn component(&self, component: &Component) -> Map<String, Value> {
        let mut written = Map::new();
        written.insert("component_type".to_owned(), json!(component.class.name));
        written.insert("id".to_owned(), json!(component.id));
        written.insert("name".to_owned(), json!(component.name));
        written.insert("description".to_owned(), json!(component.description));
        let metadata = if component.metadata.is_null() { json!({}) } else { component.metadata.clone() };
        written.insert("metadata".to_owned(), metadata);
        if component.class.io != Io::None {
            // A tool of a server whose signature the document leaves open stays open.
            let is_open = component.class.name == "MCPToolSpec";
            if !is_open || component.declared.inputs {
                written.insert("inputs".to_owned(), schemas(&component.inputs));
            }
            if !is_open || component.declared.outputs {
                written.insert("outputs".to_owned(), schemas(&component.outputs));
            }
        }
        if component.class.io == Io::Node {
            written.insert("branches".to_owned(), json!(component.branches));
        }
        for field in component.class.fields().filter(|field| field.exported && field.since <= self.version) {
            let value = match component.held.get(field.name) {
                Some(held) => self.held(held, component, field.name),
                // A number of characters replaces the default number of messages.
                None if field.name == "max_num_messages"
                    && !component.value("max_num_characters").is_null() =>
                {
                    Value::Null
                }
                None => field.default.value(),
            };
            written.insert(field.name.to_owned(), value);
        }
        written
    }

    fn held(&self, held: &Held, component: &Component, field: &str) -> Value {
        match held {
            Held::Plain(value) => value.clone(),
            Held::Secret(secret) => reference(&secret_id(secret, component, field)),
            Held::One(one) => self.one(one),
            Held::Many(many) => many.iter().map(|one| self.one(one)).collect(),
            Held::Pairs(pairs) => {
                pairs.iter().map(|(from, to)| json!([self.one(from), self.one(to)])).collect()
            }
            Held::Filter(entries) => entries
                .iter()
                .map(|entry| match entry {
                    Filter::Name(name) => json!(name),
                    Filter::Spec(spec) => self.one(spec),
                })
                .collect(),
        }
    }

    fn one(&self, component: &Arc<Component>) -> Value {
        match self.shared.contains(component.id.as_str()) {
            true => reference(&component.id),
            false => Value::Object(self.component(component)),
        }
    }
}

/// The id under which a registry holds a secret: the one of the document, or the component's and the field's.
pub(super) fn secret_id(secret: &Secret, component: &Component, field: &str) -> String {
    secret.reference().map_or_else(|| format!("{}.{field}", component.id), str::to_owned)
}

fn reference(id: &str) -> Value {
    json!({ REFERENCE: id })
}

fn schemas(properties: &[Property]) -> Value {
    properties.iter().map(|property| property.schema.clone()).collect()
}
