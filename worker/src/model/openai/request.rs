//! The body of a chat completions request.

use super::ChatCompletions;
use crate::model::ModelRequest;
use crate::model::http::{
    AnswerPart, History, MaxTokensField, PDF, ResponseFormat, WireNames, arguments_text, parameters,
    without_nulls,
};
use serde_json::{Map, Value, json};
use turnstone_domain::agent::{OutputContract, OutputFormat};
use turnstone_domain::message::{ContentPart, Message, RequestedCall, Role};

/// The members with the text of a model's reasoning. Providers want it back while the model works with tools, and some refuse
/// it afterwards.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// Returns the body for `request`, with more parameters.
pub(super) fn body(
    request: &ModelRequest,
    api: &ChatCompletions,
    (names, history): (&WireNames, &History<'_>),
    more: &Map<String, Value>,
) -> Value {
    let (max_tokens, field) = match api.max_tokens_field.of(&request.model) {
        MaxTokensField::MaxTokens => ("max_tokens", true),
        MaxTokensField::MaxCompletionTokens => ("max_completion_tokens", true),
        MaxTokensField::None => ("max_tokens", false),
    };
    let tools = request.tools.iter().map(|tool| {
        let function = json!({
            "name": names.wire(&tool.name),
            "description": tool.description,
            "parameters": parameters(&tool.input_schema),
        });
        json!({"type": "function", "function": function})
    });
    let has_tools = !request.tools.is_empty();
    let mut body = without_nulls(json!({
        "model": request.model,
        "messages": messages(request, names, history),
        "stream": true,
        "stream_options": {"include_usage": true},
        max_tokens: field.then_some(request.bound()).flatten(),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "frequency_penalty": request.frequency_penalty,
        "presence_penalty": request.presence_penalty,
        "tools": has_tools.then(|| tools.collect::<Value>()),
        "tool_choice": has_tools.then_some(request.tool_choice),
        "response_format": response_format(&request.output, api.response_format),
    }));
    body.extend(more.clone());
    Value::Object(body)
}

/// Omits `strict`: OpenAI's strict mode refuses every schema with an optional property. The answer is
/// validated in any case.
fn response_format(output: &OutputContract, offered: ResponseFormat) -> Option<Value> {
    match (&output.schema, offered) {
        (Some(schema), ResponseFormat::JsonSchema) => {
            Some(json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}))
        }
        (Some(_), ResponseFormat::JsonObject) => Some(json!({"type": "json_object"})),
        (None, _) => (output.format == OutputFormat::Json).then(|| json!({"type": "json_object"})),
    }
}

fn messages(request: &ModelRequest, names: &WireNames, history: &History<'_>) -> Value {
    let system = (!request.system.is_empty()).then(|| json!({"role": "system", "content": request.system}));
    let mut messages: Vec<Value> = system.into_iter().collect();
    let mut pictures = Vec::new();
    for message in &request.messages {
        if message.role != Role::Tool {
            messages.extend(shown(&mut pictures));
        }
        messages.push(one(message, names, history));
        if message.role == Role::Tool {
            pictures.extend(message.parts.iter().filter(|part| part.is_image()).map(part));
        }
    }
    messages.extend(shown(&mut pictures));
    Value::Array(messages)
}

/// Returns the pictures of tools as a message of the user after the outcomes, which hold only text here.
fn shown(pictures: &mut Vec<Value>) -> Option<Value> {
    if pictures.is_empty() {
        return None;
    }
    let mut content =
        vec![json!({"type": "text", "text": "The pictures of the tool results above, in order:"})];
    content.append(pictures);
    Some(json!({"role": "user", "content": content}))
}

fn one(message: &Message, names: &WireNames, history: &History<'_>) -> Value {
    match message.role {
        Role::System => json!({"role": "system", "content": message.content}),
        Role::User if !message.parts.is_empty() => {
            json!({"role": "user", "content": message.parts.iter().map(part).collect::<Value>()})
        }
        Role::User => json!({"role": "user", "content": message.content}),
        Role::Tool => {
            let call_id = message.call_id.as_ref().map_or("", |id| history.id_of(id));
            json!({"role": "tool", "tool_call_id": call_id, "content": message.content})
        }
        Role::Assistant => assistant(message, names, history),
    }
}

/// Returns an assistant's message, with the members that the provider attached to it and to its calls.
fn assistant(message: &Message, names: &WireNames, history: &History<'_>) -> Value {
    let (mut said, mut calls) = (Map::new(), Vec::new());
    for part in history.parts(message) {
        match part {
            AnswerPart::Text(_, members) | AnswerPart::Other(members) => said.extend(members.clone()),
            AnswerPart::Call(call, members) => calls.push(tool_call(call, members, names, history)),
        }
    }
    said.insert("role".to_owned(), "assistant".into());
    said.insert("content".to_owned(), message.content.as_str().into());
    if calls.is_empty() {
        said.retain(|name, _| !REASONING.contains(&name.as_str()));
    } else {
        if message.content.is_empty() {
            said.insert("content".to_owned(), Value::Null);
        }
        said.insert("tool_calls".to_owned(), calls.into());
    }
    Value::Object(said)
}

/// Returns a part of a message. A file that this provider does not accept becomes text.
fn part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Image { source } => json!({"type": "image_url", "image_url": {"url": source.as_url()}}),
        ContentPart::File { name, content, media_type } if media_type == PDF => {
            let data = format!("data:{media_type};base64,{content}");
            json!({"type": "file", "file": {"filename": name, "file_data": data}})
        }
        ContentPart::Text { .. } | ContentPart::File { .. } => {
            json!({"type": "text", "text": part.as_text()})
        }
    }
}

fn tool_call(
    call: &RequestedCall,
    members: &Map<String, Value>,
    names: &WireNames,
    history: &History<'_>,
) -> Value {
    let mut own = members.clone();
    let mut function = own.remove("function").unwrap_or_else(|| json!({}));
    function["name"] = names.wire(&call.name).into();
    function["arguments"] = arguments_text(call).into();
    own.insert("id".to_owned(), history.id_of(&call.call_id).into());
    own.insert("type".to_owned(), "function".into());
    own.insert("function".to_owned(), function);
    Value::Object(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::fixture::{picture_of_a_tool, request};
    use crate::model::http::{Api as _, MaxTokensFields};

    fn body_of(request: &ModelRequest, api: ChatCompletions) -> Value {
        body(request, &api, (&api.names(request), &History::of(request, "p")), &Map::new())
    }

    #[test]
    fn an_empty_text_beside_calls_is_null() {
        let body = body_of(&picture_of_a_tool(), ChatCompletions::default());
        assert_eq!(body["messages"][1]["content"], Value::Null);
        assert_eq!(body["messages"][1]["tool_calls"][0]["id"], "c1");
    }

    /// The bound has the name that the model needs, or is not sent.
    #[test]
    fn the_name_of_the_bound_is_chosen_by_the_model() {
        let fields = json!({"o9": "max_completion_tokens", "local": "none", "*": "max_tokens"});
        let max_tokens_field: MaxTokensFields = serde_json::from_value(fields).unwrap();
        let api = ChatCompletions { max_tokens_field, ..ChatCompletions::default() };
        let bounds = |model: &str, unbounded: bool| {
            let body = body_of(&ModelRequest { model: model.into(), unbounded, ..request() }, api.clone());
            [body["max_tokens"].clone(), body["max_completion_tokens"].clone()]
        };
        assert_eq!(bounds("o9", false), [Value::Null, json!(100)]);
        assert_eq!(bounds("other", false), [json!(100), Value::Null]);
        assert_eq!(bounds("local", false), [Value::Null, Value::Null]);
        assert_eq!(bounds("o9", true), [Value::Null, Value::Null]);
    }

    /// A picture of a tool follows its outcome, as a message of the user.
    #[test]
    fn a_picture_of_a_tool_is_after_its_outcome() {
        let body = body_of(&picture_of_a_tool(), ChatCompletions::default());
        assert_eq!(body["messages"][2], json!({"role": "tool", "tool_call_id": "c1", "content": "seen"}));
        assert_eq!(body["messages"][3]["role"], "user");
        let picture = &body["messages"][3]["content"][1]["image_url"]["url"];
        assert_eq!(picture, "data:image/png;base64,aGk=");
    }

    #[test]
    fn without_tools_nothing_is_said_about_them() {
        let request = ModelRequest { tools: Vec::new(), ..request() };
        let max_tokens_field = MaxTokensFields::One(MaxTokensField::MaxCompletionTokens);
        let body = body_of(&request, ChatCompletions { max_tokens_field, ..ChatCompletions::default() });
        for absent in ["tools", "tool_choice", "temperature", "max_tokens", "response_format"] {
            assert!(body.get(absent).is_none(), "{absent}");
        }
        assert_eq!(body["max_completion_tokens"], 100);
    }

    #[test]
    fn the_required_format_is_sent_as_far_as_the_provider_supports_it() {
        let schema = json!({"type": "object"});
        let with = |schema: Option<Value>, format, offered| {
            response_format(&OutputContract { schema, format }, offered)
        };
        let reported = with(Some(schema.clone()), OutputFormat::Json, ResponseFormat::JsonSchema).unwrap();
        assert_eq!((&reported["type"], &reported["json_schema"]["schema"]), (&json!("json_schema"), &schema));
        assert!(reported["json_schema"].get("strict").is_none());
        let object = Some(json!({"type": "json_object"}));
        assert_eq!(with(Some(schema.clone()), OutputFormat::Json, ResponseFormat::JsonObject), object);
        assert_eq!(with(None, OutputFormat::Json, ResponseFormat::JsonSchema), object);
        assert_eq!(with(None, OutputFormat::Text, ResponseFormat::JsonSchema), None);
        let output = OutputContract { schema: Some(schema), format: OutputFormat::Json };
        let request = ModelRequest { output, ..request() };
        assert!(body_of(&request, ChatCompletions::default()).get("response_format").is_some());
    }
}
