//! Schemas of the arguments of job types, which anybody who may operate the server can register (OJS schema registry).

use super::{MAX_DEPTH, Schema, deeper_than};
use crate::Timestamp;
use jsonschema::{Draft, PatternOptions};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The longest text of a schema, in bytes.
pub const MOST_BYTES: usize = 64 * 1024;

/// How much memory a compiled pattern may take, in bytes.
const MOST_PATTERN_BYTES: usize = 1024 * 1024;

/// Keywords whose schemas look at the same value as the schema that holds them.
const IN_PLACE: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "if", "then"];
const ALSO_IN_PLACE: [&str; 2] = ["else", "dependentSchemas"];

/// What becomes of a job whose arguments do not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// It is refused.
    Enforce,
    /// It is accepted, and that is told.
    Warn,
    /// Nobody looks.
    #[default]
    Off,
}

impl Mode {
    /// The words of all of them.
    pub const WORDS: [&'static str; 3] = ["enforce", "warn", "off"];

    /// The word as on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
            Self::Off => "off",
        }
    }

    /// Reads a word; `None` for an unknown one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Enforce, Self::Warn, Self::Off].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// A version of the schema of a job type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisteredSchema {
    /// The type of the jobs.
    pub job_type: String,
    /// At least 1.
    pub version: i64,
    /// What becomes of a job whose arguments do not fit.
    pub mode: Mode,
    /// The schema: JSON text.
    pub body: String,
    /// When it was registered.
    pub created_at: Timestamp,
}

impl Schema {
    /// Compiles a schema of arguments. Its draft is the one of `$schema`, else 2020-12, or draft 7 where only that
    /// understands it (`items` as a list). Patterns are matched in linear time, references lead nowhere outside, and no
    /// chain of references leads back to the value that it began with.
    ///
    /// # Errors
    /// A sentence that says why it cannot be used.
    pub fn compile_registered(schema: &Value) -> Result<Self, String> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err("a JSON Schema is an object".to_owned());
        }
        if deeper_than(schema, MAX_DEPTH) {
            return Err(format!("the schema nests deeper than {MAX_DEPTH} levels"));
        }
        if let Some(reference) = returning(schema) {
            return Err(format!("`{reference}` leads back to itself without a step into the value"));
        }
        let named = schema.get("$schema").is_some();
        let drafts: &[Option<Draft>] =
            if named { &[None] } else { &[Some(Draft::Draft202012), Some(Draft::Draft7)] };
        let mut first = None;
        for draft in drafts {
            let mut options = jsonschema::options()
                .with_pattern_options(PatternOptions::regex().size_limit(MOST_PATTERN_BYTES));
            if let Some(draft) = draft {
                options = options.with_draft(*draft);
            }
            match options.build(schema) {
                Ok(validator) => return Ok(Self { validator }),
                Err(error) => {
                    let place = error.instance_path().to_string();
                    first.get_or_insert_with(|| {
                        format!("not a usable JSON Schema: {} at {}", error, super::at(&place))
                    });
                }
            }
        }
        Err(first.unwrap_or_default())
    }
}

/// A reference that leads back to itself while it still looks at the same value: to follow it would never end.
fn returning(root: &Value) -> Option<String> {
    let mut references = Vec::new();
    collect(root, &mut references);
    references
        .into_iter()
        .find(|reference| {
            let mut seen = HashSet::new();
            let mut open = vec![*reference];
            while let Some(next) = open.pop() {
                let Some(target) = resolve(root, next) else { continue };
                for found in beside(target) {
                    if found == *reference {
                        return true;
                    }
                    if seen.insert(found) {
                        open.push(found);
                    }
                }
            }
            false
        })
        .map(str::to_owned)
}

/// All references.
fn collect<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(references(map));
            map.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

fn references(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(|name| map.get(name)?.as_str())
}

/// The references that a schema follows for the value that it looks at.
fn beside(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let Value::Object(map) = schema else { continue };
        found.extend(references(map));
        for name in IN_PLACE.iter().chain(&ALSO_IN_PLACE) {
            match map.get(*name) {
                Some(Value::Array(items)) => open.extend(items),
                Some(Value::Object(members)) if *name == "dependentSchemas" => open.extend(members.values()),
                Some(value) => open.push(value),
                None => {}
            }
        }
    }
    found
}

/// Where a reference within the document leads. One by a name of its own is taken for the root, which is the safe side.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || !fragment.starts_with('/') {
        return Some(root);
    }
    root.pointer(&fragment.replace("%25", "%").replace("%22", "\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn drafts_are_told_apart() {
        let list = json!({"type": "array", "items": [{"type": "string"}], "minItems": 1});
        let schema = Schema::compile_registered(&list).unwrap();
        assert!(schema.check(&json!(["a", 1])).is_ok() && schema.check(&json!([1])).is_err());
        let newer = json!({"prefixItems": [{"type": "integer"}], "unevaluatedItems": false});
        let schema = Schema::compile_registered(&newer).unwrap();
        assert!(schema.check(&json!([1])).is_ok() && schema.check(&json!([1, 2])).is_err());
        let named =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
        assert!(Schema::compile_registered(&named).unwrap().check(&json!([1])).is_err());
    }

    #[test]
    fn hostile_schemas_are_refused() {
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"not": deep});
        }
        for (schema, words) in [
            (json!([]), "object"),
            (json!({"type": "strin"}), "not a usable"),
            (json!({"$ref": "https://example.com/x"}), "not a usable"),
            (json!({"$ref": "file:///etc/passwd"}), "not a usable"),
            (json!({"$ref": "#/$defs/none"}), "not a usable"),
            (json!({"$ref": "#"}), "leads back"),
            (json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}), "leads back"),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
                "leads back",
            ),
            (json!({"pattern": "(?=a)b"}), "not a usable"),
            (json!({"pattern": "(a{1000}){1000}"}), "not a usable"),
            (deep, "deeper"),
        ] {
            let why = Schema::compile_registered(&schema).map(|_| ()).unwrap_err();
            assert!(why.contains(words), "{schema}: {why}");
        }
    }

    #[test]
    fn a_tree_may_hold_itself() {
        let tree =
            json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        let schema = Schema::compile_registered(&tree).unwrap();
        assert!(schema.check(&json!({"children": [{"children": []}]})).is_ok());
        assert!(schema.check(&json!({"children": [{"children": 3}]})).is_err());
    }

    #[test]
    fn a_pattern_that_backtracks_elsewhere_takes_linear_time() {
        let schema = Schema::compile_registered(&json!({"items": {"pattern": "^(a+)+$"}})).unwrap();
        assert!(schema.check(&json!([format!("{}b", "a".repeat(100_000))])).is_err());
    }
}
