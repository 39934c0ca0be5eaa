//! The operations on state, as the model calls them (OSSA §3 "State Operations").

use serde::Deserialize;
use serde_json::{Value, json};

/// A tool: its name, its description, and how its JSON Schema is made.
pub type StateTool = (&'static str, &'static str, fn() -> Value);

/// The tools, in the order in which they are offered.
pub const TOOLS: [StateTool; 8] = [
    ("state_get", "Reads a key of the state that you keep between turns.", one_key),
    ("state_get_many", "Reads several keys of your state at once.", many_keys),
    ("state_exists", "Says whether a key of your state is there.", one_key),
    (
        "state_set",
        "Sets a key of your state to a value; `ttl` is the number of seconds after which it is forgotten.",
        key_value_ttl,
    ),
    ("state_delete", "Deletes a key of your state.", one_key),
    (
        "state_append",
        "Appends a value to the list under a key of your state; begins the list if there is none.",
        key_value,
    ),
    (
        "state_checkpoint",
        "Marks the state as it is now and returns a name for it, for state_rollback.",
        nothing,
    ),
    (
        "state_rollback",
        "Takes back the changes of this turn: all of them, or those after a checkpoint.",
        a_checkpoint,
    ),
];

/// One operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Operation {
    /// The value of a key.
    Get(String),
    /// The values of keys.
    GetMany(Vec<String>),
    /// Tests for a key.
    Exists(String),
    /// A key has this value from now on.
    Set {
        /// The key.
        key: String,
        /// Its value.
        value: Value,
        /// How long it is kept, in seconds.
        ttl: Option<i64>,
    },
    /// A key is there no more.
    Delete(String),
    /// The list under a key has one more value.
    Append {
        /// The key.
        key: String,
        /// The value.
        value: Value,
    },
    /// A point to come back to.
    Checkpoint,
    /// Back to a point, or to the beginning of the turn.
    Rollback(Option<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysInput {
    keys: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyValue {
    key: String,
    value: Value,
    ttl: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    checkpoint: Option<String>,
}

impl Operation {
    /// Returns true if a tool of this name is an operation on state.
    #[must_use]
    pub fn is_one(tool: &str) -> bool {
        TOOLS.iter().any(|(name, _, _)| *name == tool)
    }

    /// Reads a call.
    ///
    /// # Errors
    /// A sentence about the arguments, or that there is no such operation.
    pub fn read(tool: &str, arguments: &Value) -> Result<Self, String> {
        let (name, _, schema) =
            TOOLS.iter().find(|(name, _, _)| *name == tool).ok_or("there is no such operation")?;
        let wrong = |error: serde_json::Error| format!("{error}; the arguments must match {}", schema());
        let key = || Key::deserialize(arguments).map(|read| read.key).map_err(wrong);
        let key_value = || KeyValue::deserialize(arguments).map_err(wrong);
        Ok(match *name {
            "state_get" => Self::Get(key()?),
            "state_get_many" => Self::GetMany(KeysInput::deserialize(arguments).map_err(wrong)?.keys),
            "state_exists" => Self::Exists(key()?),
            "state_set" => key_value().map(|KeyValue { key, value, ttl }| Self::Set { key, value, ttl })?,
            "state_delete" => Self::Delete(key()?),
            "state_append" => match key_value()? {
                KeyValue { key, value, ttl: None } => Self::Append { key, value },
                _ => return Err(format!("an append has no `ttl`; the arguments must match {}", schema())),
            },
            "state_checkpoint" => Self::Checkpoint,
            _ => Self::Rollback(Point::deserialize(arguments).map_err(wrong)?.checkpoint),
        })
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn one_key() -> Value {
    object(json!({"key": {"type": "string"}}), &["key"])
}

fn many_keys() -> Value {
    object(json!({"keys": {"type": "array", "items": {"type": "string"}}}), &["keys"])
}

fn key_value() -> Value {
    object(json!({"key": {"type": "string"}, "value": {}}), &["key", "value"])
}

fn key_value_ttl() -> Value {
    let ttl = json!({"type": "integer", "minimum": 1});
    object(json!({"key": {"type": "string"}, "value": {}, "ttl": ttl}), &["key", "value"])
}

fn nothing() -> Value {
    object(json!({}), &[])
}

fn a_checkpoint() -> Value {
    object(json!({"checkpoint": {"type": "string"}}), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_an_operation_with_a_schema() {
        for (name, _, schema) in TOOLS {
            assert!(Operation::is_one(name) && crate::schema::Schema::compile(&schema()).is_ok(), "{name}");
        }
        let read = |tool: &str, arguments: Value| Operation::read(tool, &arguments);
        assert_eq!(
            read("state_set", json!({"key": "a", "value": null, "ttl": 5})),
            Ok(Operation::Set { key: "a".into(), value: Value::Null, ttl: Some(5) })
        );
        assert_eq!(read("state_rollback", json!({})), Ok(Operation::Rollback(None)));
        assert_eq!(read("state_checkpoint", json!({})), Ok(Operation::Checkpoint));
        for (tool, arguments) in [
            ("state_get", json!({})),
            ("state_get", json!({"key": 1})),
            ("state_set", json!({"key": "a"})),
            ("state_append", json!({"key": "a", "value": 1, "ttl": 1})),
            ("state_drop", json!({})),
        ] {
            assert!(read(tool, arguments).is_err(), "{tool}");
        }
    }
}
