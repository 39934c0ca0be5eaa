//! JSON Schema 2020-12: checked when it is registered, used for tool inputs and final outputs. Every schema comes from
//! outside, so each compiles under the same limits.

pub(crate) mod patterns;
mod registered;
mod steps;

pub use patterns::{Allowance, MOST_REQUEST_COST, MOST_SCHEMA_COST};
pub use registered::{Mode, RegisteredSchema};

use crate::digest;
use jsonschema::{Draft, PatternOptions};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How deep a schema may nest; deeper ones are refused before they are compiled.
pub const MAX_DEPTH: usize = 32;

/// How deep a value from a model or a tool may nest: deeper than any tool needs, and well below what the store's
/// rows and the api's wrappers can carry.
pub const MAX_VALUE_DEPTH: usize = 64;

/// The longest text of a schema, in bytes.
pub const MOST_BYTES: usize = 64 * 1024;

/// The most memory that one compiled pattern takes, in bytes. The cost of all patterns is bounded before.
const MOST_PATTERN_BYTES: usize = 16 * 1024 * 1024;
/// The most memory that the states of one pattern take while it is matched, in bytes.
const MOST_STATE_BYTES: usize = 128 * 1024;
/// The most steps back of one match of a pattern that looks around.
const MOST_BACKTRACKS: usize = 20_000;
/// The longest text that is matched with a pattern that looks around, in bytes.
const MOST_LOOKED_AROUND: usize = 10_000;

/// The most steps of a check that takes no longer than a moment: the weight of the schema times the bytes of the value.
const LIGHT: u64 = 1_000_000;

/// How many schemas are remembered that compiled.
const MOST_VERIFIED: usize = 1_024;
/// The digests of schemas that compiled in this process.
static VERIFIED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// A compiled schema. It never fetches anything: a remote `$ref` is an error.
pub struct Schema {
    validator: jsonschema::Validator,
    looks_around: bool,
    /// The schema when it follows references, whose steps are counted for each value.
    refers: Option<Value>,
    weight: u64,
}

/// The findings about a schema before it is compiled.
pub(crate) struct Vetted {
    looks_around: bool,
    refers: bool,
    weight: u64,
}

impl Vetted {
    /// Refuses a schema that is too long, too deep or too costly. Nothing is compiled.
    fn of(schema: &Value) -> Result<Self, String> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err("a JSON Schema is an object".to_owned());
        }
        if deeper_than(schema, MAX_DEPTH) {
            return Err(format!("the schema nests deeper than {MAX_DEPTH} levels"));
        }
        let bytes = schema.to_string().len();
        if bytes > MOST_BYTES {
            return Err(format!("the schema has {bytes} bytes; at most {MOST_BYTES} are allowed"));
        }
        let (cost, looks_around) = patterns::vet(schema)?;
        let refers = steps::refers(schema);
        if refers {
            steps::vet(schema)?;
        }
        Ok(Self { looks_around, refers, weight: cost + bytes as u64 })
    }

    fn built(&self, schema: &Value, draft: Option<Draft>) -> Result<jsonschema::Validator, String> {
        let options = jsonschema::options();
        let options = match draft {
            Some(draft) => options.with_draft(draft),
            None => options,
        };
        let options = if self.looks_around {
            let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_BACKTRACKS);
            options.with_pattern_options(
                patterns.size_limit(MOST_PATTERN_BYTES).dfa_size_limit(MOST_STATE_BYTES),
            )
        } else {
            let patterns = PatternOptions::regex();
            options.with_pattern_options(
                patterns.size_limit(MOST_PATTERN_BYTES).dfa_size_limit(MOST_STATE_BYTES),
            )
        };
        options.build(schema).map_err(|error| {
            format!("not a usable JSON Schema: {error} at {}", at(&error.instance_path().to_string()))
        })
    }

    fn with(&self, schema: &Value, validator: jsonschema::Validator) -> Schema {
        let refers = self.refers.then(|| schema.clone());
        Schema { validator, looks_around: self.looks_around, refers, weight: self.weight }
    }
}

impl Schema {
    /// Compiles a schema. The costliest schema that is allowed takes up to a tenth of a second and 20 MB, so call it
    /// where it may block.
    ///
    /// # Errors
    /// A sentence that says why the value is not a JSON Schema, or which limit it exceeds. The limits are 64 KiB, 32
    /// levels, the cost of its patterns together, and the steps of its references.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let vetted = Vetted::of(schema)?;
        jsonschema::meta::validate(schema)
            .map_err(|e| format!("not a JSON Schema: {} at {}", e, at(&e.instance_path().to_string())))?;
        Ok(vetted.with(schema, vetted.built(schema, None)?))
    }

    /// Checks that a schema compiles, without keeping the result. The last thousand schemas that did are remembered by their
    /// digests, so that a batch of jobs with one schema compiles it once.
    ///
    /// # Errors
    /// As [`Schema::compile`].
    pub fn verify(schema: &Value) -> Result<(), String> {
        let digest = digest::of_json(schema);
        let known = || VERIFIED.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(&digest) {
            return Ok(());
        }
        Self::compile(schema)?;
        let mut known = known();
        if known.len() >= MOST_VERIFIED {
            known.clear();
        }
        known.insert(digest);
        Ok(())
    }

    /// Checks a value; at most three problems are named.
    ///
    /// # Errors
    /// A sentence per problem, each with the place in the value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if let Some(schema) = &self.refers {
            steps::allow(schema, value)?;
        }
        if self.looks_around && longest(value) > MOST_LOOKED_AROUND {
            let most = MOST_LOOKED_AROUND;
            return Err(format!(
                "it holds a text of more than {most} bytes, which is not matched with patterns that look around"
            ));
        }
        let problems: Vec<String> = self
            .validator
            .iter_errors(value)
            .take(3)
            .map(|e| format!("{} at {}", e, at(&e.instance_path().to_string())))
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    /// Returns whether a check of a value of this many bytes takes no longer than a moment: less than about a millisecond.
    #[must_use]
    pub fn is_light(&self, value_bytes: usize) -> bool {
        let steps = self.weight.saturating_mul(value_bytes as u64);
        self.refers.is_none() && !self.looks_around && steps <= LIGHT
    }

    /// Returns how much memory the schema takes, in units that are comparable among schemas: about 20 bytes.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weight
    }
}

/// Returns about how many bytes a value has as JSON.
#[must_use]
pub fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| bytes_of(item) + 1).sum::<usize>() + 1,
        Value::Object(map) => {
            map.iter().map(|(name, value)| name.len() + bytes_of(value) + 4).sum::<usize>() + 1
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}

/// Returns the length of the longest text in a value, in bytes.
fn longest(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(longest).max().unwrap_or(0),
        Value::Object(map) => {
            map.iter().map(|(name, value)| name.len().max(longest(value))).max().unwrap_or(0)
        }
        _ => 0,
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

/// Returns true if a value nests deeper than `limit`; it stops as soon as it knows.
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
    fn small_values_of_plain_schemas_are_light() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 80}}});
        let value = json!({"city": "Bern", "days": [1, null, true]});
        assert!((30..60).contains(&bytes_of(&value)), "{}", bytes_of(&value));
        let plain = Schema::compile(&schema).unwrap();
        assert!(plain.is_light(bytes_of(&value)) && !plain.is_light(1_000_000));
        for heavy in [
            json!({"pattern": r"^\p{L}{50}$"}),
            json!({"pattern": "^(?!a)"}),
            json!({"items": {"$ref": "#"}}),
        ] {
            assert!(!Schema::compile(&heavy).unwrap().is_light(1_000), "{heavy}");
        }
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
