//! The body of a chat completions request.

use super::config::{MaxTokensField, OpenAiConfig, ResponseFormat};
use crate::model::ModelRequest;
use crate::model::http::{PDF, WireNames, arguments_text};
use crate::model::structured_output::StructuredOutput;
use serde_json::{Map, Value, json};
use turnstone_domain::agent::{OutputContract, OutputFormat};
use turnstone_domain::message::{ContentPart, Message, RequestedCall, Role};

/// Returns the body for `request`, with more parameters.
pub(super) fn body(
    request: &ModelRequest,
    config: &OpenAiConfig,
    names: &WireNames,
    more: &Map<String, Value>,
) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.as_str().into());
    body.insert("messages".to_owned(), messages(request, names));
    body.insert("stream".to_owned(), true.into());
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    let max_tokens = match config.max_tokens_field {
        MaxTokensField::MaxTokens => "max_tokens",
        MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
    };
    body.insert(max_tokens.to_owned(), request.max_tokens.into());
    let parameters = [
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("frequency_penalty", request.frequency_penalty),
        ("presence_penalty", request.presence_penalty),
    ];
    for (name, value) in parameters {
        if let Some(value) = value {
            body.insert(name.to_owned(), value.into());
        }
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let function = json!({
                "name": names.wire(&tool.name),
                "description": tool.description,
                "parameters": tool.input_schema,
            });
            json!({"type": "function", "function": function})
        });
        body.insert("tools".to_owned(), tools.collect());
        body.insert("tool_choice".to_owned(), json!(request.tool_choice));
    }
    if config.structured_output == StructuredOutput::Native
        && let Some(format) = response_format(&request.output, config.response_format)
    {
        body.insert("response_format".to_owned(), format);
    }
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

fn messages(request: &ModelRequest, names: &WireNames) -> Value {
    let system = (!request.system.is_empty()).then(|| json!({"role": "system", "content": request.system}));
    let mut messages: Vec<Value> = system.into_iter().collect();
    let mut pictures = Vec::new();
    for message in &request.messages {
        if message.role != Role::Tool {
            messages.extend(shown(&mut pictures));
        }
        messages.push(one(message, names));
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

fn one(message: &Message, names: &WireNames) -> Value {
    match message.role {
        Role::System => json!({"role": "system", "content": message.content}),
        Role::User if !message.parts.is_empty() => {
            json!({"role": "user", "content": message.parts.iter().map(part).collect::<Value>()})
        }
        Role::User => json!({"role": "user", "content": message.content}),
        Role::Tool => {
            let call_id = message.call_id.as_ref().map_or("", |id| id.as_str());
            json!({"role": "tool", "tool_call_id": call_id, "content": message.content})
        }
        Role::Assistant if message.tool_calls.is_empty() => {
            json!({"role": "assistant", "content": message.content})
        }
        Role::Assistant => {
            let content =
                if message.content.is_empty() { Value::Null } else { message.content.as_str().into() };
            let calls: Value = message.tool_calls.iter().map(|call| tool_call(call, names)).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
    }
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

fn tool_call(call: &RequestedCall, names: &WireNames) -> Value {
    let function = json!({"name": names.wire(&call.name), "arguments": arguments_text(call)});
    json!({"id": call.call_id.as_str(), "type": "function", "function": function})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::Api as _;
    use crate::model::{Listener, ToolOffer};
    use std::sync::Arc;
    use std::time::Duration;
    use turnstone_domain::agent::ToolChoice;

    fn request() -> ModelRequest {
        let call =
            |arguments: Value| RequestedCall { call_id: "c1".into(), name: "web.search".into(), arguments };
        ModelRequest {
            model: "m".into(),
            system: "be brief".into(),
            messages: vec![
                Message::text(Role::User, "hi").into(),
                Arc::new(Message {
                    tool_calls: vec![call(json!({"q": 1})), call(json!("not json"))],
                    ..Message::text(Role::Assistant, "")
                }),
                Message::tool("c1".into(), "18").into(),
            ],
            tools: vec![ToolOffer {
                name: "web.search".into(),
                description: "d".into(),
                input_schema: json!({}),
            }],
            tool_choice: ToolChoice::Required,
            temperature: Some(0.5),
            top_p: None,
            frequency_penalty: Some(-1.0),
            presence_penalty: None,
            max_tokens: 99,
            output: OutputContract::default(),
            timeout: Duration::from_secs(1),
            listener: Listener::default(),
        }
    }

    fn body_of(request: &ModelRequest, config: &OpenAiConfig) -> Value {
        body(request, config, &config.names(request), &Map::new())
    }

    #[test]
    fn a_conversation_is_sent_in_the_providers_format() {
        let body = body_of(&request(), &OpenAiConfig::default());
        assert_eq!(body["messages"][0], json!({"role": "system", "content": "be brief"}));
        let requested = &body["messages"][2];
        assert_eq!(requested["content"], Value::Null);
        assert_eq!(requested["tool_calls"][0]["id"], "c1");
        assert_eq!(
            requested["tool_calls"][0]["function"],
            json!({"name": "web_search", "arguments": "{\"q\":1}"})
        );
        assert_eq!(
            requested["tool_calls"][1]["function"]["arguments"],
            r#"{"invalid_arguments":"not json"}"#
        );
        assert_eq!(body["messages"][3], json!({"role": "tool", "tool_call_id": "c1", "content": "18"}));
        assert_eq!((&body["tool_choice"], &body["max_tokens"]), (&json!("required"), &json!(99)));
        assert_eq!((&body["stream"], &body["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
    }

    #[test]
    fn without_tools_nothing_is_said_about_them() {
        let request = ModelRequest { tools: Vec::new(), temperature: None, ..request() };
        let config =
            OpenAiConfig { max_tokens_field: MaxTokensField::MaxCompletionTokens, ..OpenAiConfig::default() };
        let body = body_of(&request, &config);
        for absent in ["tools", "tool_choice", "temperature", "max_tokens", "response_format"] {
            assert!(body.get(absent).is_none(), "{absent}");
        }
        assert_eq!(body["max_completion_tokens"], 99);
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
        let prompted =
            OpenAiConfig { structured_output: StructuredOutput::Prompt, ..OpenAiConfig::default() };
        assert!(body_of(&request, &OpenAiConfig::default()).get("response_format").is_some());
        assert!(body_of(&request, &prompted).get("response_format").is_none());
    }
}
