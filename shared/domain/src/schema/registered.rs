//! Schemas of the arguments of job types. Any caller that may operate the server can register them (OJS schema
//! registry).

use super::{Schema, Vetted};
use crate::Timestamp;
use jsonschema::Draft;
use serde_json::Value;

/// The treatment of a job whose arguments do not match.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// It is refused.
    Enforce,
    /// It is accepted, with a warning.
    Warn,
    /// It is not checked.
    #[default]
    Off,
}

impl Mode {
    /// The words of all of them.
    pub const WORDS: [&'static str; 3] = ["enforce", "warn", "off"];

    /// Returns the word as on the wire and in the database.
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
    /// The treatment of a job whose arguments do not match.
    pub mode: Mode,
    /// The schema: JSON text.
    pub body: String,
    /// When it was registered.
    pub created_at: Timestamp,
}

impl Schema {
    /// Compiles a schema of arguments. Its draft is the one of `$schema`, else 2020-12, or draft 7 where only that
    /// understands it (`items` as a list). Patterns are matched in linear time: none of them looks around.
    ///
    /// # Errors
    /// As [`Schema::compile`].
    pub fn compile_registered(schema: &Value) -> Result<Self, String> {
        let vetted = Vetted::of(schema)?;
        if vetted.looks_around {
            return Err("not a usable JSON Schema: a pattern looks around (`(?=`, `(?!`, `(?<`)".to_owned());
        }
        let named = schema.get("$schema").is_some();
        let drafts: &[Option<Draft>] =
            if named { &[None] } else { &[Some(Draft::Draft202012), Some(Draft::Draft7)] };
        let mut first = None;
        for draft in drafts {
            match vetted.built(schema, *draft) {
                Ok(validator) => return Ok(vetted.with(schema, validator)),
                Err(why) => drop(first.get_or_insert(why)),
            }
        }
        Err(first.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn drafts_are_distinguished() {
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
            (json!({"$ref": "https://example.com/x"}), "leads outside"),
            (json!({"$ref": "file:///etc/passwd"}), "leads outside"),
            (json!({"$ref": "#/$defs/none"}), "not a usable"),
            (json!({"$ref": "#"}), "leads back"),
            (json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}), "leads back"),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
                "leads back",
            ),
            (json!({"pattern": "(?=a)b"}), "not a usable"),
            (json!({"pattern": "(a{1000}){1000}"}), "too large"),
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
    fn a_backtracking_pattern_takes_linear_time() {
        let schema = Schema::compile_registered(&json!({"items": {"pattern": "^(a+)+$"}})).unwrap();
        assert!(schema.check(&json!([format!("{}b", "a".repeat(100_000))])).is_err());
    }
}
