//! A server's answer to a call, as the tool's output.

use crate::schema_check::check;
use crate::tool::ToolError;
use crate::tool::outbound::excerpt;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::{Value, json};
use turnstone_domain::schema::{MAX_VALUE_DEPTH, Schema, deeper_than};
use turnstone_telemetry::redact;

/// The most characters of a failure that the model receives.
const TOLD: usize = 2000;

/// Returns the output: structured content if there is any, else the text, else the blocks as JSON (RS-22).
///
/// # Errors
/// [`ToolError::Answered`] when the server reports that the call failed. [`ToolError::Final`] when its answer
/// is unusable: more than `limit` bytes, a question, a task, or a value outside its promised schema. That
/// call ran, and another one would run again.
pub(super) fn output(
    tool: &str,
    response: CallToolResponse,
    promised: Option<&Schema>,
    limit: usize,
) -> Result<Value, ToolError> {
    let sentence = |problem: String| format!("tool {tool}: {problem}");
    let unusable = |problem: String| ToolError::Final(sentence(problem));
    let result = match response {
        CallToolResponse::Complete(result) => result,
        CallToolResponse::InputRequired(_) => {
            return Err(unusable(
                "its server asks for input in the middle of a call, which is not offered".to_owned(),
            ));
        }
        _ => return Err(unusable("its server answered with a task, which is not offered".to_owned())),
    };
    if result.is_error == Some(true) {
        let text = excerpt(&texts(&result.content).join("\n"), TOLD);
        let text = if text.is_empty() { "failed without a word".to_owned() } else { text };
        return Err(ToolError::Answered(sentence(text)));
    }
    if let Some(schema) = promised {
        let kept = match &result.structured_content {
            Some(structured) => check(schema, structured),
            None => Err("there is no structured content".to_owned()),
        };
        kept.map_err(|why| unusable(format!("its answer is not what its outputSchema promises: {why}")))?;
    }
    let value = clean(body(result).map_err(unusable)?);
    let bytes = value.to_string().len();
    if bytes > limit {
        return Err(unusable(format!(
            "the outcome has {bytes} bytes, more than the {limit} allowed; raise max_response_bytes if that is wanted"
        )));
    }
    if deeper_than(&value, MAX_VALUE_DEPTH) {
        return Err(unusable(format!("the outcome nests deeper than {MAX_VALUE_DEPTH} levels")));
    }
    Ok(value)
}

/// Returns true if an answer has content that is no text.
pub(super) fn has_files(response: &CallToolResponse) -> bool {
    let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
    matches!(response, CallToolResponse::Complete(result) if !result.content.iter().all(is_text))
}

fn body(result: CallToolResult) -> Result<Value, String> {
    let plain = result.content.iter().all(|block| matches!(block, ContentBlock::Text(_)));
    let blocks = |content: &[ContentBlock]| {
        serde_json::to_value(content).map_err(|error| format!("its answer is no JSON: {error}"))
    };
    match result.structured_content {
        Some(structured) if plain => Ok(structured),
        Some(structured) => Ok(json!({"structuredContent": structured, "content": blocks(&result.content)?})),
        None if plain && result.content.len() <= 1 => {
            Ok(texts(&result.content).first().map_or(Value::Null, |text| Value::from(*text)))
        }
        None => blocks(&result.content),
    }
}

fn texts(content: &[ContentBlock]) -> Vec<&str> {
    content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect()
}

/// Redacts secrets: a server that echoes our credentials must not carry them into the conversation.
fn clean(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(&text)),
        Value::Array(items) => items.into_iter().map(clean).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (redact(&key), clean(value))).collect(),
        other => other,
    }
}
