//! The Engagement object as CEL values, and a result as JSON.

use super::vet::{Keys, Needs};
use super::{PolicyError, VARIABLES};
use cel::Value as Cel;
use cel::objects::{Key, Map as CelMap};
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// The most that an expression may read, and the most that it may give, in bytes of JSON.
const MAX_BYTES: usize = 256 * 1024;
/// The longest list that it may read.
const MAX_LIST: usize = 1000;
/// The deepest nesting; serde_json itself reads 128 levels.
const MAX_DEPTH: usize = 160;

/// The variables that an expression names, with the keys that it names.
pub(super) fn variables(engagement: &Value, needs: &Needs) -> Result<Vec<(&'static str, Cel)>, PolicyError> {
    let mut left = Left(MAX_BYTES);
    let mut variables = Vec::with_capacity(VARIABLES.len());
    for name in VARIABLES {
        let Some(keys) = needs.get(name) else { continue };
        let Some(value) = engagement.get(name) else {
            return Err(PolicyError::Input(format!("it has no `{name}`")));
        };
        let value = match (name, value, keys) {
            ("started_at", value, _) => timestamp(value)?,
            (_, Value::Object(map), Keys::Some(keys)) => {
                object(map.iter().filter(|(key, _)| keys.contains(*key)), 0, &mut left)?
            }
            (_, value, _) => cel(value, 0, &mut left)?,
        };
        variables.push((name, value));
    }
    Ok(variables)
}

fn timestamp(value: &Value) -> Result<Cel, PolicyError> {
    let time = value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    time.map(Cel::Timestamp)
        .ok_or_else(|| PolicyError::Input("`started_at` is not an RFC 3339 time".to_owned()))
}

/// Bytes that may still be read or written.
struct Left(usize);

impl Left {
    fn take(&mut self, bytes: usize) -> Result<(), PolicyError> {
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            PolicyError::Input(format!(
                "what the expression reads or gives is larger than {} KiB",
                MAX_BYTES / 1024
            ))
        })?;
        Ok(())
    }
}

fn cel(value: &Value, depth: usize, left: &mut Left) -> Result<Cel, PolicyError> {
    Ok(match value {
        Value::Null => {
            left.take(4)?;
            Cel::Null
        }
        Value::Bool(flag) => {
            left.take(4)?;
            Cel::Bool(*flag)
        }
        Value::Number(number) => {
            left.take(8)?;
            // Never UInt where Int will do: CEL does not add an unsigned and a signed number.
            match (number.as_i64(), number.as_u64()) {
                (Some(signed), _) => Cel::Int(signed),
                (None, Some(unsigned)) => Cel::UInt(unsigned),
                (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
            }
        }
        Value::String(text) => {
            left.take(text.len() + 2)?;
            Cel::String(Arc::new(text.clone()))
        }
        Value::Array(items) => {
            if items.len() > MAX_LIST {
                let message = format!(
                    "a list that the expression reads has {} items; at most {MAX_LIST} are read",
                    items.len()
                );
                return Err(PolicyError::Input(message));
            }
            left.take(2)?;
            let depth = deeper(depth)?;
            Cel::List(Arc::new(items.iter().map(|item| cel(item, depth, left)).collect::<Result<_, _>>()?))
        }
        Value::Object(map) => object(map.iter(), depth, left)?,
    })
}

fn object<'a>(
    entries: impl Iterator<Item = (&'a String, &'a Value)>,
    depth: usize,
    left: &mut Left,
) -> Result<Cel, PolicyError> {
    let depth = deeper(depth)?;
    let mut map = HashMap::new();
    left.take(2)?;
    for (key, value) in entries {
        left.take(key.len() + 4)?;
        map.insert(Key::String(Arc::new(key.clone())), cel(value, depth, left)?);
    }
    Ok(Cel::Map(CelMap { map: Arc::new(map) }))
}

fn deeper(depth: usize) -> Result<usize, PolicyError> {
    if depth < MAX_DEPTH {
        return Ok(depth + 1);
    }
    Err(PolicyError::Input(format!("it nests deeper than {MAX_DEPTH} levels")))
}

/// A result as JSON: timestamps as RFC 3339, durations in seconds with an `s`.
pub(super) fn to_json(value: &Cel) -> Result<Value, PolicyError> {
    json(value, 0, &mut Left(MAX_BYTES))
}

fn json(value: &Cel, depth: usize, left: &mut Left) -> Result<Value, PolicyError> {
    left.take(4)?;
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => Value::Bool(*flag),
        Cel::Int(number) => Value::from(*number),
        Cel::UInt(number) => Value::from(*number),
        Cel::Float(number) => serde_json::Number::from_f64(*number)
            .map(Value::Number)
            .ok_or_else(|| PolicyError::Evaluation("its result is not a finite number".to_owned()))?,
        Cel::String(text) => {
            left.take(text.len())?;
            Value::String(text.as_str().to_owned())
        }
        Cel::Timestamp(time) => Value::String(time.to_rfc3339_opts(SecondsFormat::Millis, true)),
        Cel::Duration(span) => Value::String(format!("{}s", span.num_milliseconds() as f64 / 1000.0)),
        Cel::List(items) => {
            let depth = deeper(depth)?;
            Value::Array(items.iter().map(|item| json(item, depth, left)).collect::<Result<_, _>>()?)
        }
        Cel::Map(map) => {
            let depth = deeper(depth)?;
            // A hash map has no order of its own; sorted keys make the result the same every time.
            let mut entries: Vec<_> = map.map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let mut object = Map::new();
            for (key, value) in entries {
                let key = match key {
                    Key::String(text) => text.as_str().to_owned(),
                    Key::Int(number) => number.to_string(),
                    Key::Uint(number) => number.to_string(),
                    Key::Bool(flag) => flag.to_string(),
                };
                left.take(key.len())?;
                object.insert(key, json(value, depth, left)?);
            }
            Value::Object(object)
        }
        _ => return Err(PolicyError::Evaluation("its result has no form in JSON".to_owned())),
    })
}

/// What a value is, for a sentence.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
