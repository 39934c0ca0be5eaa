//! Values that every provider formats in the same odd ways.

use super::unicode;
use crate::model::Usage;
use crate::tool::outbound::excerpt;
use serde_json::{Map, Value, json};
use turnstone_domain::message::RequestedCall;
use turnstone_domain::schema::{MAX_VALUE_DEPTH, deeper_than};

/// The one kind of file that providers read from bytes.
pub const PDF: &str = "application/pdf";

/// Returns the arguments of a tool call as the model wrote them: a string when they are not JSON.
pub fn arguments(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    // Values that nest too deeply stay text; no schema of a tool accepts that.
    match unicode::read_whole(&text) {
        Ok(mut value) if !deeper_than(&value, MAX_VALUE_DEPTH) => {
            unicode::each_text(&mut value, &mut unicode::without_nul);
            value
        }
        _ => Value::String(text),
    }
}

/// Returns a number of tokens; `None` when it is no number.
pub fn count(said: &Value) -> Option<i64> {
    said.as_i64().or_else(|| {
        // Above i64, or a fraction: a saturating cast gives an upper bound.
        #[expect(clippy::cast_possible_truncation, reason = "saturates, and is checked before it is booked")]
        said.as_f64().map(|number| number.ceil() as i64)
    })
}

/// Returns the arguments of a call of the conversation as text. Servers parse them again, and refuse a conversation in
/// which they are no object.
pub fn arguments_text(call: &RequestedCall) -> String {
    match &call.arguments {
        Value::Object(_) => call.arguments.to_string(),
        other => json!({"invalid_arguments": other}).to_string(),
    }
}

/// Returns the usage in the counts of OpenAI's APIs, which have these names for a prompt and an answer; `None` if it is
/// absent or no number. A part that is missing is what the total has beside the other one. A total alone counts as an answer,
/// which is the dearer part, to a prompt of one token.
pub fn usage(said: &Value, input: &str, output: &str) -> Option<Usage> {
    let part = |of: &str, name: &str| count(&said[format!("{of}_tokens_details")][name]).unwrap_or(0);
    let total = count(&said["total_tokens"]);
    let (asked, written) =
        (count(&said[format!("{input}_tokens")]), count(&said[format!("{output}_tokens")]));
    let rest = |other: Option<i64>| Some(total?.saturating_sub(other.unwrap_or(1)).max(0));
    let written = written.or_else(|| rest(asked))?;
    Some(Usage {
        input: asked.or_else(|| rest(Some(written)))?,
        cached_input: part(input, "cached_tokens"),
        output: written,
        reasoning: part(output, "reasoning_tokens"),
    })
}

/// Returns the sentence about an answer that ended for a reason by which it is not complete, or that is unknown.
pub fn unknown_end(reason: &str) -> String {
    format!("the answer ended with `{}`, which is no end of a complete answer", excerpt(reason, 60))
}

/// Returns the JSON Schema of a tool's arguments in the form that every provider accepts: an object names its properties, even
/// if it has none.
pub fn parameters(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema
        && members.get("type").is_some_and(|kind| kind == "object")
    {
        members.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Returns the items of a list; none if it is no list.
pub fn list(said: &Value) -> &[Value] {
    said.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the members of an object that are not null.
pub fn without_nulls(object: Value) -> Map<String, Value> {
    let Value::Object(members) = object else { return Map::new() };
    members.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_properties_has_an_empty_list_of_them() {
        assert_eq!(parameters(&json!({"type": "object"})), json!({"type": "object", "properties": {}}));
        for whole in
            [json!({"type": "object", "properties": {"a": {}}}), json!({"type": "string"}), json!(true)]
        {
            assert_eq!(parameters(&whole), whole);
        }
    }

    #[test]
    fn arguments_that_are_not_json_are_kept_as_text() {
        assert_eq!(arguments(" ".into()), json!({}));
        assert_eq!(arguments("{\"a\": 1}".into()), json!({"a": 1}));
        assert_eq!(arguments("{\"a\":".into()), json!("{\"a\":"));
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert_eq!(arguments(deep.clone()), json!(deep));
    }
}
