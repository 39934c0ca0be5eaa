//! JSON as CEL values, and a result as JSON.

use super::PolicyError;
use super::inexact::InexactNumber;
use crate::number::exact_float;
use cel::Value as Cel;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use cel::objects::Key;
use chrono::SecondsFormat;
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

/// The most bytes of JSON that an expression with loops may read, and that any expression may return.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
/// The longest list that such an expression may read.
pub(super) const MAX_LIST: usize = 10_000;
/// The most bytes that an expression without loops may read.
pub(super) const MAX_BYTES_LOOKED_UP: usize = 16 * 1024 * 1024;
/// The longest list that such an expression may read.
pub(super) const MAX_LIST_LOOKED_UP: usize = 100_000;
/// The deepest nesting; serde_json itself reads 128 levels.
const MAX_DEPTH: usize = 160;

/// A CEL value that borrows nothing.
pub(super) type Bound = Box<dyn Val>;

/// The bytes that may still be read or written.
pub(super) struct Left {
    bytes: usize,
    list: usize,
    longest: usize,
}

impl Left {
    /// Limits the bytes that are read in all, and the length of a list.
    pub(super) fn new(bytes: usize, list: usize) -> Self {
        Self { bytes, list, longest: 0 }
    }

    /// Subtracts bytes from the rest.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), PolicyError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| {
            PolicyError::Input("what the expression reads or gives is too large for it".to_owned())
        })?;
        Ok(())
    }

    /// Checks the length of a list.
    pub(super) fn list(&mut self, items: usize) -> Result<(), PolicyError> {
        self.saw(items);
        if items <= self.list {
            return Ok(());
        }
        Err(PolicyError::Input(format!(
            "a list that the expression reads has {items} items; at most {} are read",
            self.list
        )))
    }

    /// Notes a list or map of this length.
    pub(super) fn saw(&mut self, items: usize) {
        self.longest = self.longest.max(items);
    }

    /// Returns the length of the longest list or map so far.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the rest, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns a JSON value as CEL reads it.
pub(super) fn cel(value: &Value, depth: usize, left: &mut Left) -> Result<Bound, PolicyError> {
    Ok(match value {
        Value::Null => {
            left.take(4)?;
            Box::new(CelNull)
        }
        Value::Bool(flag) => {
            left.take(4)?;
            Box::new(CelBool::from(*flag))
        }
        Value::Number(number) => {
            left.take(8)?;
            // Never UInt where Int will do: CEL does not add an unsigned and a signed number.
            match (number.as_i64(), number.as_u64()) {
                (Some(signed), _) => Box::new(CelInt::from(signed)),
                (None, Some(unsigned)) => Box::new(CelUInt::from(unsigned)),
                (None, None) => match exact_float(number) {
                    Some(float) => Box::new(CelDouble::from(float)),
                    None => Box::new(InexactNumber(number.clone())),
                },
            }
        }
        Value::String(text) => {
            left.take(text.len() + 2)?;
            Box::new(CelString::from(text.clone()))
        }
        Value::Array(items) => {
            left.list(items.len())?;
            left.take(2)?;
            let depth = deeper(depth)?;
            let items = items.iter().map(|item| cel(item, depth, left)).collect::<Result<Vec<_>, _>>()?;
            Box::new(CelList::from(items))
        }
        Value::Object(map) => Box::new(object(map.iter(), depth, left)?),
    })
}

/// Entries of a JSON object as CEL reads them.
pub(super) fn object<'a>(
    entries: impl Iterator<Item = (&'a String, &'a Value)>,
    depth: usize,
    left: &mut Left,
) -> Result<CelMap<'static>, PolicyError> {
    let depth = deeper(depth)?;
    let mut map = HashMap::new();
    left.take(2)?;
    for (name, value) in entries {
        left.take(name.len() + 4)?;
        map.insert(key(name), cel(value, depth, left)?);
    }
    left.saw(map.len());
    Ok(CelMap::from(map))
}

/// Returns the key of a map.
pub(super) fn key(name: &str) -> CelMapKey<'static> {
    CelMapKey::String(CelString::from(name.to_owned()))
}

fn deeper(depth: usize) -> Result<usize, PolicyError> {
    if depth < MAX_DEPTH {
        return Ok(depth + 1);
    }
    Err(PolicyError::Input(format!("it nests deeper than {MAX_DEPTH} levels")))
}

/// Returns a result as JSON: timestamps as RFC 3339, durations in seconds with an `s`.
pub(super) fn to_json(value: &Cel) -> Result<Value, PolicyError> {
    json(value, 0, &mut Left::new(MAX_BYTES, usize::MAX))
}

fn json(value: &Cel, depth: usize, left: &mut Left) -> Result<Value, PolicyError> {
    left.take(4)?;
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => Value::Bool(*flag),
        Cel::Int(number) => Value::from(*number),
        Cel::UInt(number) => Value::from(*number),
        Cel::Float(number) => Number::from_f64(*number)
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

/// Returns the type of a value, for a sentence.
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
