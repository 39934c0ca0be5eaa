//! Values that every provider formats in the same odd ways.

use serde_json::{Map, Value};
use turnstone_domain::schema::{MAX_VALUE_DEPTH, deeper_than};

/// The one kind of file that providers read from bytes.
pub(in crate::model) const PDF: &str = "application/pdf";

/// Returns the arguments of a tool call as the model wrote them: a string when they are not JSON.
pub(in crate::model) fn arguments(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    // Values that nest too deeply stay text; no schema of a tool accepts that.
    match serde_json::from_str(&text) {
        Ok(value) if !deeper_than(&value, MAX_VALUE_DEPTH) => value,
        _ => Value::String(text),
    }
}

/// Returns a number of tokens; `None` when it is no number.
pub(in crate::model) fn count(said: &Value) -> Option<i64> {
    said.as_i64().or_else(|| {
        // Above i64, or a fraction: a saturating cast gives an upper bound.
        #[expect(clippy::cast_possible_truncation, reason = "saturates, and is checked before it is booked")]
        said.as_f64().map(|number| number.ceil() as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_that_are_not_json_are_kept_as_text() {
        assert_eq!(arguments(" ".into()), json!({}));
        assert_eq!(arguments("{\"a\": 1}".into()), json!({"a": 1}));
        assert_eq!(arguments("{\"a\":".into()), json!("{\"a\":"));
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert_eq!(arguments(deep.clone()), json!(deep));
    }
}
