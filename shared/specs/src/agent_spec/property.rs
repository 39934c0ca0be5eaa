//! Properties: the named inputs and outputs of components.

use super::types::Type;
use serde_json::{Value, json};
use std::collections::HashSet;

/// An input or an output: a JSON Schema with a title.
#[derive(Clone, PartialEq, Debug)]
pub struct Property {
    /// Its name.
    pub title: String,
    /// Its type.
    pub r#type: Type,
    /// The value when none is given.
    pub default: Option<Value>,
    /// A text for models and people.
    pub description: Option<String>,
    /// The schema as the document has it.
    pub schema: Value,
}

/// The reason why a schema is no property: the rule and a sentence.
pub(super) type Refusal = (&'static str, String);

impl Property {
    /// Reads a property from its schema.
    ///
    /// # Errors
    /// The rule that is broken (`AS-20` … `AS-22`) and a sentence.
    pub(super) fn of(schema: &Value) -> Result<Self, Refusal> {
        let title = match schema.get("title") {
            Some(Value::String(title)) => title.clone(),
            Some(_) => return Err(("AS-20", "the `title` of a property must be a text".to_owned())),
            None => return Err(("AS-20", "a property needs a `title`, which is its name".to_owned())),
        };
        check_titles(schema, true)?;
        let about = |why: String| format!("property `{}`: {why}", crate::shape::shortened(&title));
        let r#type = Type::of(schema).map_err(|why| ("AS-21", about(why)))?;
        let default = schema.get("default").cloned();
        if default.as_ref().is_some_and(|default| !fits(default, schema)) {
            return Err(("AS-22", about("its `default` is not of its type".to_owned())));
        }
        let description = schema.get("description").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { title, r#type, default, description, schema: schema.clone() })
    }

    /// A property that a component infers by itself.
    pub(super) fn inferred(title: &str, schema: Value) -> Self {
        let mut schema = schema;
        schema["title"] = json!(title);
        let r#type = Type::of(&schema).unwrap_or(Type::Any);
        let default = schema.get("default").cloned();
        let description = schema.get("description").and_then(Value::as_str).map(str::to_owned);
        Self { title: title.to_owned(), r#type, default, description, schema }
    }

    /// A property of type string, as placeholders yield it.
    pub(super) fn text(title: &str) -> Self {
        Self::inferred(title, json!({"type": "string"}))
    }
}

/// Titles are names that templates and edges can hold (AS-20).
fn check_titles(schema: &Value, outermost: bool) -> Result<(), Refusal> {
    if let Some(title) = schema.get("title").and_then(Value::as_str) {
        if title.is_empty() && outermost {
            return Err(("AS-20", "the `title` of a property must not be empty".to_owned()));
        }
        if let Some(bad) = title.chars().find(|c| ".,{} \n'\"".contains(*c)) {
            let shown = crate::shape::shortened(title);
            let bad = bad.escape_debug();
            return Err((
                "AS-20",
                format!(
                    "the title `{shown}` has `{bad}`; a title has no point, comma, brace, blank, quote or line break"
                ),
            ));
        }
    }
    let each = |held: Option<&Value>| match held {
        Some(Value::Object(map)) => map.values().try_for_each(|schema| check_titles(schema, false)),
        Some(Value::Array(list)) => list.iter().try_for_each(|schema| check_titles(schema, false)),
        _ => Ok(()),
    };
    each(schema.get("properties"))?;
    each(schema.get("anyOf"))?;
    for key in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(key).filter(|schema| schema.is_object()) {
            check_titles(schema, false)?;
        }
    }
    Ok(())
}

/// Returns whether a default is of its type. Numbers and booleans are cast to one another, and an object may leave out what
/// has a default of its own.
fn fits(value: &Value, schema: &Value) -> bool {
    if let Some(Value::Array(members)) = schema.get("anyOf") {
        return members.iter().any(|member| fits(value, member));
    }
    match schema.get("type") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).any(|name| fits_named(value, name, schema))
        }
        Some(Value::String(name)) => fits_named(value, name, schema),
        _ => true,
    }
}

fn fits_named(value: &Value, name: &str, schema: &Value) -> bool {
    match (name, value) {
        ("null", Value::Null) | ("string", Value::String(_)) => true,
        ("integer" | "number" | "boolean", Value::Number(_) | Value::Bool(_)) => true,
        ("array", Value::Array(items)) => {
            schema.get("items").is_none_or(|schema| items.iter().all(|item| fits(item, schema)))
        }
        ("object", Value::Object(given)) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let named = properties.into_iter().flatten().all(|(name, schema)| match given.get(name) {
                Some(value) => fits(value, schema),
                None => schema.get("default").is_some(),
            });
            let is_named = |name: &String| properties.is_some_and(|map| map.contains_key(name));
            let others = schema.get("additionalProperties").filter(|schema| schema.is_object());
            named
                && others.is_none_or(|schema| {
                    given.iter().filter(|(name, _)| !is_named(name)).all(|(_, value)| fits(value, schema))
                })
        }
        _ => false,
    }
}

/// The names of placeholders (`{{ name }}`) in a text, in the order of their first use. Anything else in double braces is
/// no placeholder.
#[must_use]
pub fn placeholders(text: &str) -> Vec<String> {
    let mut names = Names::default();
    names.add_from(text);
    names.listed
}

/// Names in the order of their first use.
#[derive(Default)]
pub(super) struct Names {
    pub(super) listed: Vec<String>,
    known: HashSet<String>,
}

impl Names {
    fn add_from(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let (name, after) = placeholder(&rest[at + 2..]);
            if let Some(name) = name
                && self.known.insert(name.to_owned())
            {
                self.listed.push(name.to_owned());
            }
            // After a brace that opens nothing, the next one may.
            rest = after.unwrap_or(&rest[at + 1..]);
        }
    }

    /// Adds the placeholders in every text of a value, keys included.
    pub(super) fn add_all(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add_from(text),
            Value::Array(items) => items.iter().for_each(|item| self.add_all(item)),
            Value::Object(map) => {
                for (key, value) in map {
                    self.add_from(key);
                    self.add_all(value);
                }
            }
            _ => {}
        }
    }
}

/// The name between double braces, and the text behind them.
fn placeholder(inside: &str) -> (Option<&str>, Option<&str>) {
    let inside = inside.trim_start();
    let end = inside.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    match rest.trim_start().strip_prefix("}}") {
        Some(after) if !name.is_empty() => (Some(name), Some(after)),
        _ => (None, None),
    }
}
