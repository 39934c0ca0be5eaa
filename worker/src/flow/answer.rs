//! The answer of the model of an `LlmNode` as the outputs of the node.

use super::machine::Values;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use turnstone_domain::embedded::after_thinking;
use turnstone_domain::json::unambiguous;
use turnstone_specs::agent_spec::{Property, Type};

/// The tags around the answer of a model that was asked to mark it.
const TAGS: (&str, &str) = ("<final_answer>", "</final_answer>");

/// Returns true when the whole answer is the output.
pub fn is_text(outputs: &[Property]) -> bool {
    matches!(outputs, [only] if only.r#type == Type::String)
}

/// The JSON Schema of the answer: an object with all outputs.
pub fn schema(outputs: &[Property]) -> Value {
    let properties: Map<String, Value> =
        outputs.iter().map(|output| (output.title.clone(), output.schema.clone())).collect();
    let required: Vec<&str> = outputs
        .iter()
        .filter(|output| output.default.is_none())
        .map(|output| output.title.as_str())
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// Reads the answer.
///
/// # Errors
/// A sentence: it holds no JSON of the demanded form.
pub fn read(outputs: &[Property], text: &str) -> Result<Values, String> {
    if let [only] = outputs
        && is_text(outputs)
    {
        return Ok(Values::from_iter([(only.title.clone(), text.into())]));
    }
    let marked = text.rfind(TAGS.0).map_or(text, |at| {
        let inside = &text[at + TAGS.0.len()..];
        inside.find(TAGS.1).map_or(inside, |end| &inside[..end])
    });
    let value = json_in(marked).ok_or("the model's answer holds no JSON of the demanded form")?;
    match (value, outputs) {
        (Value::Object(map), [only]) if !map.contains_key(&only.title) && is_object(&only.r#type) => {
            Ok(Values::from_iter([(only.title.clone(), map.into())]))
        }
        (Value::Object(map), _) => Ok(map),
        (other, [only]) => Ok(Values::from_iter([(only.title.clone(), other)])),
        _ => Err("the model's answer is no JSON object, and the node has several outputs".to_owned()),
    }
}

fn is_object(of: &Type) -> bool {
    matches!(of, Type::Object(_) | Type::Any)
}

/// The brackets of a text at which JSON is looked for.
const MOST_BRACKETS: usize = 32;

/// The JSON of a text: all of it, what a Markdown fence holds, or the first value that begins with a bracket. A value
/// with a member that stands twice is none, and the search ends there.
fn json_in(text: &str) -> Option<Value> {
    let all = text.trim();
    let text = after_thinking(text);
    let fenced = text.split("```").nth(1).map(|inside| inside.strip_prefix("json").unwrap_or(inside).trim());
    let begins = text.match_indices(['{', '[']).take(MOST_BRACKETS).map(|(at, _)| &text[at..]);
    let whole =
        [all, text].into_iter().chain(fenced).filter(|part| serde_json::from_str::<IgnoredAny>(part).is_ok());
    let found = whole.chain(begins.filter_map(first_value)).next()?;
    unambiguous(found).ok()
}

/// The JSON value with which a text begins.
fn first_value(text: &str) -> Option<&str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(&text[..values.byte_offset()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_in_tags_fences_and_sentences() {
        let found = Some(json!({"a": 1}));
        for text in [
            "{\"a\": 1}",
            "```json\n{\"a\": 1}\n```",
            "Here it is: {\"a\": 1}. Done.",
            "```\n{\"a\":1}```",
            "A set {x} has one: {\"a\": 1}",
        ] {
            assert_eq!(json_in(text), found, "{text}");
        }
        for text in ["no", "{\"a\": 2, \"a\": 1}", "Here: {\"b\": {\"a\": 2, \"a\": 1}} or {\"a\": 1}"] {
            assert_eq!(json_in(text), None, "{text}");
        }
    }
}
