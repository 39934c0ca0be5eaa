//! Readers of single values. An error completes a sentence that begins with the field's name.

use serde_json::{Map, Value};
use turnstone_domain::{RawJson, RawObject};

/// Parses a text.
pub(crate) fn value(raw: &RawJson) -> Result<Value, String> {
    raw.parse().map_err(|error| format!("cannot be read: {error}"))
}

pub(crate) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("must be a string, not {}", kind(value)))
}

pub(crate) fn filled_text(value: &Value) -> Result<&str, String> {
    match text(value)? {
        "" => Err("must not be empty".to_owned()),
        text => Ok(text),
    }
}

pub(crate) fn integer(value: &Value) -> Result<i64, String> {
    value.as_i64().ok_or_else(|| match value {
        Value::Number(number) => format!("must be a whole number of at most 64 bits, not {number}"),
        other => format!("must be an integer, not {}", kind(other)),
    })
}

pub(crate) fn integer_from(value: &Value, least: i64) -> Result<i64, String> {
    match integer(value)? {
        number if number < least => Err(format!("must be at least {least}, not {number}")),
        number => Ok(number),
    }
}

pub(crate) fn integer_between(value: &Value, least: i64, most: i64) -> Result<i64, String> {
    match integer_from(value, least)? {
        number if number > most => Err(format!("must be at most {most}, not {number}")),
        number => Ok(number),
    }
}

pub(crate) fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("must be an object, not {}", kind(value)))
}

/// Reads the members of an object.
pub(crate) fn raw_object(raw: &RawJson) -> Result<RawObject, String> {
    let wrong = || format!("must be an object, not {}", raw_kind(raw));
    if raw.is_object() { raw.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

pub(crate) fn array(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("must be an array, not {}", kind(value)))
}

pub(crate) fn texts(value: &Value) -> Result<Vec<String>, String> {
    let item = |(at, item)| filled_text(item).map(str::to_owned).map_err(|why| format!("[{at}] {why}"));
    array(value)?.iter().enumerate().map(item).collect()
}

/// Returns the type of a value, with an article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the type of a text, with an article.
pub(crate) fn raw_kind(raw: &RawJson) -> &'static str {
    match raw.as_str().as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ => "a number",
    }
}

/// Returns the first `limit` characters of a text that a client sent or caused, for an error message.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
