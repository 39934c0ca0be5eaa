//! A server's answer to a call, as the tool's output.

use super::reply::{NoReply, ToolReply};
use crate::schema_check::check;
use crate::tool::ToolError;
use crate::tool::outbound::excerpt;
use serde_json::{Value, json};
use turnstone_domain::schema::{MAX_VALUE_DEPTH, Schema, deeper_than};
use turnstone_telemetry::redact;

/// The most characters of a failure that the model receives.
const SHOWN: usize = 2000;

/// The output of a call.
pub(super) struct CallOutput {
    /// Structured content if there is any, else the text, else the blocks as JSON.
    pub(super) value: Value,
    /// True if the content is more than text.
    pub(super) has_files: bool,
    /// The parts that are not as the protocol or the schema has them, in sentences.
    pub(super) notes: Vec<String>,
}

/// Returns the output of a call (RS-22).
///
/// # Errors
/// [`ToolError::Answered`] when the server reports that the call failed. [`ToolError::Final`] when its answer
/// is unusable: more than `limit` bytes, a question, a task, or a value outside its promised schema. That
/// call ran, and another one would run again.
pub(super) fn output(
    tool: &str,
    reply: Result<ToolReply, NoReply>,
    promised: Option<&Schema>,
    limit: usize,
) -> Result<CallOutput, ToolError> {
    let sentence = |problem: String| format!("tool {tool}: {problem}");
    let unusable = |problem: String| ToolError::Final(sentence(problem));
    let mut reply = reply.map_err(|none| {
        unusable(match none {
            NoReply::AsksForInput => {
                "its server asks for input in the middle of a call, which is not offered".to_owned()
            }
            NoReply::Task => "its server answered with a task, which is not offered".to_owned(),
        })
    })?;
    if reply.is_error {
        return Err(ToolError::Answered(sentence(failure(&reply))));
    }
    if let Some(schema) = promised
        && let Err(why) = kept(schema, &reply)
    {
        let why = format!("its answer is not what its outputSchema promises: {why}");
        // Its numbers were read as texts, and the schema knows numbers.
        if !reply.is_rewritten {
            return Err(unusable(why));
        }
        reply.notes.push(why);
    }
    let notes = reply.notes.iter().map(|note| excerpt(note, SHOWN)).collect();
    let has_files = !reply.blocks.iter().all(|block| text_of(block).is_some());
    let value = clean(body(reply));
    let bytes = value.to_string().len();
    if bytes > limit {
        return Err(unusable(format!(
            "the outcome has {bytes} bytes, more than the {limit} allowed; raise max_response_bytes if that is wanted"
        )));
    }
    if deeper_than(&value, MAX_VALUE_DEPTH) {
        return Err(unusable(format!("the outcome nests deeper than {MAX_VALUE_DEPTH} levels")));
    }
    Ok(CallOutput { value, has_files, notes })
}

/// Returns the words of a failure: its texts, or else its other content.
fn failure(reply: &ToolReply) -> String {
    let texts: Vec<&str> = reply.blocks.iter().filter_map(text_of).collect();
    let words = match (texts.is_empty(), &reply.structured) {
        (false, _) => texts.join("\n"),
        (true, Some(structured)) => structured.to_string(),
        (true, None) if reply.blocks.is_empty() => "failed without a word".to_owned(),
        (true, None) => Value::from(reply.blocks.clone()).to_string(),
    };
    let words = excerpt(&words, SHOWN);
    if words.is_empty() { "failed without a word".to_owned() } else { words }
}

fn kept(schema: &Schema, reply: &ToolReply) -> Result<(), String> {
    match &reply.structured {
        Some(structured) => check(schema, structured),
        None => Err("there is no structured content".to_owned()),
    }
}

fn body(ToolReply { blocks, structured, .. }: ToolReply) -> Value {
    let plain = blocks.iter().all(|block| text_of(block).is_some());
    match structured {
        Some(structured) if plain => structured,
        Some(structured) => json!({"structuredContent": structured, "content": blocks}),
        None if plain && blocks.len() <= 1 => {
            blocks.first().and_then(text_of).map_or(Value::Null, Value::from)
        }
        None => blocks.into(),
    }
}

/// Returns the text of a block; `None` if it is no text.
fn text_of(block: &Value) -> Option<&str> {
    block["text"].as_str().filter(|_| block["type"] == "text")
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
