//! The body of a request to the responses API.

use crate::model::ModelRequest;
use crate::model::http::{AnswerPart, History, PDF, WireNames, arguments_text, parameters, without_nulls};
use serde_json::{Map, Value, json};
use turnstone_domain::agent::{OutputContract, OutputFormat};
use turnstone_domain::message::{ContentPart, Message, RequestedCall, Role};

/// Returns the body for `request`, with more parameters.
pub(super) fn body(
    request: &ModelRequest,
    names: &WireNames,
    history: &History<'_>,
    more: &Map<String, Value>,
) -> Value {
    let items = request.messages.iter().flat_map(|message| items(message, names, history));
    let tools = request.tools.iter().map(|tool| {
        // This API's default is strict, which refuses every schema with an optional property.
        json!({
            "type": "function",
            "name": names.wire(&tool.name),
            "description": tool.description,
            "parameters": parameters(&tool.input_schema),
            "strict": false,
        })
    });
    let has_tools = !request.tools.is_empty();
    let mut body = without_nulls(json!({
        "model": request.model,
        "instructions": (!request.system.is_empty()).then_some(&request.system),
        "input": items.collect::<Value>(),
        "stream": true,
        "store": false,
        // The provider keeps no reasoning, so the next request has to hold it.
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": request.bound(),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "tools": has_tools.then(|| tools.collect::<Value>()),
        "tool_choice": has_tools.then_some(request.tool_choice),
        "text": format(&request.output).map(|format| json!({"format": format})),
    }));
    body.extend(more.clone());
    Value::Object(body)
}

/// Returns the demanded form of the answer. Its schema is not strict, for the reason above; the answer is
/// validated in any case.
fn format(output: &OutputContract) -> Option<Value> {
    match &output.schema {
        Some(schema) => {
            Some(json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": false}))
        }
        None => (output.format == OutputFormat::Json).then(|| json!({"type": "json_object"})),
    }
}

/// Returns a message as items: its text is one item, and each call another.
fn items(message: &Message, names: &WireNames, history: &History<'_>) -> Vec<Value> {
    match message.role {
        Role::System => vec![said("system", message)],
        Role::User if !message.parts.is_empty() => {
            let parts: Value = message.parts.iter().map(part).collect();
            vec![json!({"type": "message", "role": "user", "content": parts})]
        }
        Role::User => vec![said("user", message)],
        Role::Tool => {
            let call_id = message.call_id.as_ref().map_or("", |id| history.id_of(id));
            let output = match message.parts.is_empty() {
                true => message.content.as_str().into(),
                false => message.parts.iter().map(part).collect::<Value>(),
            };
            vec![json!({"type": "function_call_output", "call_id": call_id, "output": output})]
        }
        Role::Assistant => {
            let parts = history.parts(message);
            let is_whole = parts.iter().all(is_readable);
            let item = |part: &AnswerPart<'_>| item(part, is_whole, names, history);
            let items: Vec<Value> = parts.iter().filter_map(item).collect();
            if items.is_empty() { vec![said("assistant", message)] } else { items }
        }
    }
}

/// Returns true if an item means something to the provider, which has kept nothing: reasoning only if it is encrypted.
fn is_readable(part: &AnswerPart<'_>) -> bool {
    match part {
        AnswerPart::Other(members) => {
            members.get("type").is_none_or(|kind| kind != "reasoning")
                || members.contains_key("encrypted_content")
        }
        AnswerPart::Text(..) | AnswerPart::Call(..) => true,
    }
}

/// Returns a part of an assistant's message as an item. The ids of items belong to the reasoning before them, so without its
/// reasoning an answer has only words and calls.
fn item(part: &AnswerPart<'_>, is_whole: bool, names: &WireNames, history: &History<'_>) -> Option<Value> {
    let (mut item, members) = match part {
        AnswerPart::Other(members) => return is_whole.then(|| Value::Object((*members).clone())),
        AnswerPart::Call(call, members) => (function_call(call, names, history), members),
        AnswerPart::Text(text, members) if members.is_empty() || !is_whole => {
            (json!({"type": "message", "role": "assistant", "content": text}), members)
        }
        AnswerPart::Text(text, members) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            (json!({"type": "message", "role": "assistant", "content": content}), members)
        }
    };
    for (name, value) in members.iter().filter(|(name, _)| is_whole || *name == "phase") {
        item[name] = value.clone();
    }
    Some(item)
}

fn said(role: &str, message: &Message) -> Value {
    json!({"type": "message", "role": role, "content": message.content})
}

/// Returns a part of a message. A file that this provider does not accept becomes text.
fn part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Image { source } => json!({"type": "input_image", "image_url": source.as_url()}),
        ContentPart::File { name, content, media_type } if media_type == PDF => {
            let data = format!("data:{media_type};base64,{content}");
            json!({"type": "input_file", "filename": name, "file_data": data})
        }
        ContentPart::Text { .. } | ContentPart::File { .. } => {
            json!({"type": "input_text", "text": part.as_text()})
        }
    }
}

fn function_call(call: &RequestedCall, names: &WireNames, history: &History<'_>) -> Value {
    json!({
        "type": "function_call",
        "call_id": history.id_of(&call.call_id),
        "name": names.wire(&call.name),
        "arguments": arguments_text(call),
    })
}
