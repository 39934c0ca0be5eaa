//! JSON Schema 2020-12: checked when it is registered, used for tool inputs and final outputs.

mod registered;

pub use registered::{MOST_BYTES, Mode, RegisteredSchema};

use serde_json::Value;
use std::fmt;

/// How deep a schema may nest; deeper ones are refused before they are compiled.
pub const MAX_DEPTH: usize = 32;

/// How deep a value from a model or a tool may nest: deeper than any tool needs, and well below what the store's
/// rows and the api's wrappers can carry.
pub const MAX_VALUE_DEPTH: usize = 64;

/// A compiled schema. It never fetches anything: a remote `$ref` is an error.
pub struct Schema {
    validator: jsonschema::Validator,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// A sentence that says why the value is not a JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err("a JSON Schema is an object".to_owned());
        }
        if deeper_than(schema, MAX_DEPTH) {
            return Err(format!("the schema nests deeper than {MAX_DEPTH} levels"));
        }
        jsonschema::meta::validate(schema)
            .map_err(|e| format!("not a JSON Schema: {} at {}", e, at(&e.instance_path().to_string())))?;
        let validator =
            jsonschema::validator_for(schema).map_err(|e| format!("not a usable JSON Schema: {e}"))?;
        Ok(Self { validator })
    }

    /// Checks a value; at most three problems are named.
    ///
    /// # Errors
    /// A sentence per problem, each with the place in the value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let problems: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(3)
            .map(|e| format!("{} at {}", e, at(&e.instance_path().to_string())))
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

fn at(pointer: &str) -> &str {
    if pointer.is_empty() { "the root" } else { pointer }
}

/// Whether a value nests deeper than `limit`; stops looking as soon as it knows.
#[must_use]
pub fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if limit == 0 => true,
        Value::Array(items) => items.iter().any(|item| deeper_than(item, limit - 1)),
        Value::Object(map) => map.values().any(|item| deeper_than(item, limit - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_that_is_not_one_is_refused() {
        for bad in [
            json!("string"),
            json!({"type": "strin"}),
            json!({"properties": 3}),
            json!({"$ref": "https://example.com/x"}),
        ] {
            assert!(Schema::compile(&bad).is_err(), "{bad}");
        }
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"not": deep});
        }
        assert!(Schema::compile(&deep).is_err_and(|e| e.contains("deeper")));
    }

    #[test]
    fn problems_name_the_place() {
        let schema = Schema::compile(
            &json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]}),
        )
        .unwrap();
        let problem = schema.check(&json!({"a": "x"})).unwrap_err();
        assert!(problem.contains("/a") && problem.contains('b'), "{problem}");
        assert!(schema.check(&json!({"a": 1, "b": 2})).is_ok());
    }
}
