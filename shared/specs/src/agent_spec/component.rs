//! A component as its document has it: checked against its class, references resolved.

use super::class::Class;
use super::property::Property;
use super::secret::Secret;
use super::version::Version;
use crate::problem::Place;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A component and the components that it holds.
pub(crate) struct Component {
    pub(crate) class: &'static Class,
    pub(crate) at: Place,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) metadata: Value,
    pub(crate) held: HashMap<&'static str, Held>,
    pub(crate) places: HashMap<&'static str, Place>,
    pub(crate) inputs: Vec<Property>,
    pub(crate) outputs: Vec<Property>,
    pub(crate) branches: Vec<String>,
    /// The parts of these that the document gives itself.
    pub(crate) declared: Declared,
    /// The first version that has all that it uses, and what that is.
    pub(crate) bound: (Version, String),
    /// `true` when everything in it could be read, so that rules over several fields can be checked.
    pub(crate) is_whole: bool,
}

/// The parts of its signature that a component declares; what it does not declare is inferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Declared {
    pub(crate) inputs: bool,
    pub(crate) outputs: bool,
    pub(crate) branches: bool,
}

/// The value of a field.
#[derive(Clone)]
pub(crate) enum Held {
    Plain(Value),
    Secret(Secret),
    One(Arc<Component>),
    Many(Vec<Arc<Component>>),
    Pairs(Vec<(Arc<Component>, Arc<Component>)>),
    Filter(Vec<Filter>),
}

/// An entry of `tool_filter`.
#[derive(Clone)]
pub(crate) enum Filter {
    Name(String),
    Spec(Arc<Component>),
}

impl Component {
    /// The name that problems show: `LlmNode \`summary\``.
    pub(crate) fn shown(&self) -> String {
        format!("{} `{}`", self.class.name, crate::shape::shortened(&self.name))
    }

    /// The place of a field, or else of the component.
    pub(crate) fn place(&self, field: &str) -> Place {
        self.places.get(field).copied().unwrap_or(self.at)
    }

    pub(crate) fn one(&self, field: &str) -> Option<&Arc<Self>> {
        match self.held.get(field) {
            Some(Held::One(component)) => Some(component),
            _ => None,
        }
    }

    pub(crate) fn many(&self, field: &str) -> &[Arc<Self>] {
        match self.held.get(field) {
            Some(Held::Many(components)) => components,
            _ => &[],
        }
    }

    pub(crate) fn pairs(&self, field: &str) -> &[(Arc<Self>, Arc<Self>)] {
        match self.held.get(field) {
            Some(Held::Pairs(pairs)) => pairs,
            _ => &[],
        }
    }

    pub(crate) fn filter(&self, field: &str) -> Option<&[Filter]> {
        match self.held.get(field) {
            Some(Held::Filter(entries)) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn secret(&self, field: &str) -> Option<&Secret> {
        match self.held.get(field) {
            Some(Held::Secret(secret)) => Some(secret),
            _ => None,
        }
    }

    /// The value of a plain field: as given, or its default.
    pub(crate) fn value(&self, field: &str) -> Value {
        match self.held.get(field) {
            Some(Held::Plain(value)) => value.clone(),
            _ => self
                .class
                .fields()
                .find(|known| known.name == field)
                .map_or(Value::Null, |known| known.default.value()),
        }
    }

    pub(crate) fn text(&self, field: &str) -> String {
        self.optional_text(field).unwrap_or_default()
    }

    pub(crate) fn optional_text(&self, field: &str) -> Option<String> {
        match self.value(field) {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, field: &str) -> bool {
        self.value(field) == Value::Bool(true)
    }

    /// All components that its fields hold, in the order of the fields.
    pub(crate) fn children(&self) -> Vec<&Arc<Self>> {
        let mut children = Vec::new();
        for field in self.class.fields() {
            match self.held.get(field.name) {
                Some(Held::One(one)) => children.push(one),
                Some(Held::Many(many)) => children.extend(many),
                Some(Held::Pairs(pairs)) => children.extend(pairs.iter().flat_map(|(a, b)| [a, b])),
                Some(Held::Filter(entries)) => {
                    children.extend(entries.iter().filter_map(|entry| match entry {
                        Filter::Spec(spec) => Some(spec),
                        Filter::Name(_) => None,
                    }))
                }
                Some(Held::Plain(_) | Held::Secret(_)) | None => {}
            }
        }
        children
    }
}
