//! A server's answer to a call, in the protocol's form or near to it.

use super::message::notes_of;
use crate::tool::body_text::HAS_NO_NUMBERS;
use rmcp::model::{ContentBlock, ServerResult};
use serde_json::{Value, json};

/// The result of a call.
pub(super) struct ToolReply {
    /// The blocks of its content. One of an unknown kind is kept as it was sent.
    pub(super) blocks: Vec<Value>,
    /// Its structured content.
    pub(super) structured: Option<Value>,
    /// True if the tool reports a failure.
    pub(super) is_error: bool,
    /// The parts that are not as the protocol has them, in sentences.
    pub(super) notes: Vec<String>,
    /// True if the message had to be rewritten before it could be read.
    pub(super) is_rewritten: bool,
}

/// An answer without a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoReply {
    /// The server asks for input.
    AsksForInput,
    /// The server answered with a task.
    Task,
}

/// Reads an answer. All of it that can be read is kept.
///
/// # Errors
/// The answer has no result.
pub(super) fn read(answer: ServerResult) -> Result<ToolReply, NoReply> {
    let value = match answer {
        ServerResult::InputRequiredResult(_) => return Err(NoReply::AsksForInput),
        ServerResult::CreateTaskResult(_) => return Err(NoReply::Task),
        other => serde_json::to_value(other).unwrap_or_default(),
    };
    match value["resultType"].as_str() {
        Some("input_required") => Err(NoReply::AsksForInput),
        Some("task") => Err(NoReply::Task),
        _ => Ok(of_value(value)),
    }
}

fn of_value(mut value: Value) -> ToolReply {
    let mut notes = notes_of(value["_meta"].as_object());
    let is_rewritten = notes.iter().any(|note| note.starts_with(HAS_NO_NUMBERS));
    let mut take = |name: &str| value.as_object_mut().and_then(|result| result.shift_remove(name));
    let (content, structured, is_error) = (take("content"), take("structuredContent"), take("isError"));
    let is_error = match is_error {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(other) => {
            notes.push(format!("its isError is {other} instead of true or false"));
            other == "true"
        }
    };
    let mut blocks = match content {
        Some(Value::Array(blocks)) => blocks,
        None | Some(Value::Null) => Vec::new(),
        Some(other) => {
            notes.push("its content is no list".to_owned());
            vec![other]
        }
    };
    for block in &mut blocks {
        if let Value::String(text) = block {
            notes.push("a text in its content is no block".to_owned());
            *block = json!({"type": "text", "text": text});
        } else if serde_json::from_value::<ContentBlock>(block.clone()).is_err() {
            let kind = block["type"].as_str().unwrap_or("none");
            notes.push(format!(
                "a block of the type `{kind}` in its content is not one of the protocol; it is kept as JSON"
            ));
        }
    }
    let is_empty = blocks.is_empty() && structured.is_none() && !is_error;
    let rest =
        value.as_object().is_some_and(|rest| rest.keys().any(|name| name != "_meta" && name != "resultType"));
    if is_empty && rest {
        notes.push("its result has neither content nor structuredContent; it is kept as JSON".to_owned());
        return ToolReply { blocks, structured: Some(value), is_error, notes, is_rewritten };
    }
    ToolReply { blocks, structured, is_error, notes, is_rewritten }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(value: Value) -> ToolReply {
        read(serde_json::from_value(value).unwrap()).unwrap_or_else(|none| panic!("{none:?}"))
    }

    #[test]
    fn content_of_an_unknown_kind_is_kept() {
        let text = json!({"type": "text", "text": "hi"});
        let chart = json!({"type": "chart", "points": [1, 2]});
        let read = reply(json!({"content": [text, chart]}));
        assert_eq!(read.blocks, [text.clone(), chart]);
        assert!(matches!(read.notes.as_slice(), [note] if note.contains("`chart`")), "{:?}", read.notes);
        for (content, blocks) in [
            (json!("hi"), json!([text])),
            (json!([text, "hi"]), json!([text, text])),
            (json!([{"type": "image"}]), json!([{"type": "image"}])),
            (json!([7]), json!([7])),
        ] {
            let read = reply(json!({"content": content, "isError": false}));
            assert_eq!((Value::from(read.blocks), read.notes.is_empty()), (blocks, false), "{content}");
        }
    }

    #[test]
    fn a_result_of_another_form_is_kept_as_json() {
        let read = reply(json!({"toolResult": {"a": 1}}));
        assert_eq!((read.structured, read.notes.len()), (Some(json!({"toolResult": {"a": 1}})), 1));
        let read = reply(json!({"structuredContent": {"a": 1}}));
        assert_eq!((read.structured, read.notes.len()), (Some(json!({"a": 1})), 0));
        let read = reply(json!({}));
        assert!(read.blocks.is_empty() && read.structured.is_none() && read.notes.is_empty());
        let read = reply(json!({"content": [], "isError": "true"}));
        assert!(read.is_error && read.notes.len() == 1);
    }
}
