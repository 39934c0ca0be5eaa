//! The body of a request to the messages API.

use super::demand::Demand;
use crate::model::ModelRequest;
use crate::model::http::{AnswerPart, History, PDF, WireNames, parameters, without_nulls};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use turnstone_domain::agent::ToolChoice;
use turnstone_domain::message::{ContentPart, ImageKind, Message, RequestedCall, Role};

/// The text that replaces an empty one, which this provider refuses.
const EMPTY: &str = "(no text)";

/// Returns the body for `request`.
pub(super) fn body(request: &ModelRequest, names: &WireNames, history: &History<'_>) -> Value {
    let (tools, choice) = tools(request, Demand::of(request), names);
    let has_tools = !tools.is_empty();
    Value::Object(without_nulls(json!({
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": (!request.system.is_empty()).then_some(&request.system),
        "messages": messages(&request.messages, names, history),
        "stream": true,
        // Our range ends at 2, the provider's at 1.
        "temperature": request.temperature.map(|temperature| temperature.min(1.0)),
        "top_p": request.top_p,
        "tools": has_tools.then_some(tools),
        "tool_choice": has_tools.then_some(choice),
    })))
}

/// Returns the tools on offer, and the rule for which of them may or must be called.
fn tools(request: &ModelRequest, demand: Demand, names: &WireNames) -> (Vec<Value>, Value) {
    let offered = request.tools.iter().map(|tool| {
        json!({
            "name": names.wire(&tool.name),
            "description": tool.description,
            "input_schema": parameters(&tool.input_schema),
        })
    });
    let answer = demand.tool(request.output.schema.as_ref(), names);
    let choice = match (&answer, request.tool_choice) {
        (Some(_), _) if request.tools.is_empty() => json!({"type": "tool", "name": demand.wire(names)}),
        // The model must call a tool, or answer by the answer's own tool.
        (Some(_), _) | (None, ToolChoice::Required) => json!({"type": "any"}),
        (None, ToolChoice::Auto) => json!({"type": "auto"}),
        (None, ToolChoice::None) => json!({"type": "none"}),
    };
    let tools: Vec<Value> = offered.chain(answer).collect();
    if !tools.is_empty() {
        return (tools, choice);
    }
    // The provider refuses a conversation with calls but no tools, so the called tools are defined.
    let called: BTreeSet<String> = request
        .messages
        .iter()
        .flat_map(|message| message.tool_calls.iter().map(|call| names.wire(&call.name)))
        .collect();
    let gone = called.into_iter().map(|name| {
        json!({"name": name, "description": "Not available any more.", "input_schema": {"type": "object"}})
    });
    (gone.collect(), json!({"type": "none"}))
}

/// Returns the conversation as turns of user and assistant. Consecutive messages of one role are one turn.
/// The outcomes of tools belong to the user here, and all of them are in the turn after their calls.
fn messages(messages: &[Arc<Message>], names: &WireNames, history: &History<'_>) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let blocks = blocks(message, names, history);
        match turns.last_mut() {
            Some((last, together)) if *last == role => together.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn blocks(message: &Message, names: &WireNames, history: &History<'_>) -> Vec<Value> {
    if message.role == Role::Tool {
        let call_id = message.call_id.as_ref().map_or("", |id| history.id_of(id));
        let content = match message.parts.is_empty() {
            true => message.content.as_str().into(),
            false => message.parts.iter().map(part).collect::<Value>(),
        };
        return vec![json!({"type": "tool_result", "tool_use_id": call_id, "content": content})];
    }
    if message.role == Role::User && !message.parts.is_empty() {
        return message.parts.iter().map(part).collect();
    }
    let mut blocks = Vec::new();
    for part in history.parts(message) {
        blocks.extend(match part {
            AnswerPart::Text(said, _) if said.trim().is_empty() => None,
            AnswerPart::Text(said, members) => Some(block(members, text(said))),
            AnswerPart::Call(call, members) => Some(block(members, tool_use(call, names, history))),
            AnswerPart::Other(members) => Some(Value::Object(members.clone())),
        });
    }
    let is_thought = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    if blocks.last().is_none_or(is_thought) {
        // A message neither is empty nor ends with thinking.
        blocks.push(text(EMPTY));
    }
    blocks
}

/// Returns a block with more members.
fn block(members: &Map<String, Value>, mut block: Value) -> Value {
    for (name, value) in members {
        block[name] = value.clone();
    }
    block
}

/// Returns a part of a message. A file that this provider does not accept as a document becomes text.
fn part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Image { source } => match source.kind {
            ImageKind::Url => json!({"type": "image", "source": {"type": "url", "url": source.data}}),
            ImageKind::Base64 => {
                let bytes = json!({"type": "base64", "media_type": source.media_type, "data": source.data});
                json!({"type": "image", "source": bytes})
            }
        },
        ContentPart::File { name, content, media_type } if media_type == PDF => {
            let bytes = json!({"type": "base64", "media_type": media_type, "data": content});
            json!({"type": "document", "source": bytes, "title": name})
        }
        ContentPart::Text { .. } | ContentPart::File { .. } => match part.as_text() {
            said if said.trim().is_empty() => text(EMPTY),
            said => text(&said),
        },
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_use(call: &RequestedCall, names: &WireNames, history: &History<'_>) -> Value {
    let input = match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        other => json!({"invalid_arguments": other}),
    };
    json!({"type": "tool_use", "id": history.id_of(&call.call_id), "name": names.wire(&call.name), "input": input})
}
