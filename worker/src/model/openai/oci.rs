//! Models of Oracle's cloud (OCI Generative AI, `chat`): the conversation of chat completions in the cloud's own forms,
//! `GENERIC` and `COHERE`, in signed requests. Answers come in one piece.

use super::ChatCompletions;
use crate::model::http::{Api, History, PartialAnswer, WireNames, list};
use crate::model::{Listener, ModelRequest};
use serde_json::{Map, Value, json};

/// Parameters by their names in chat completions and here.
const PARAMETERS: [(&str, &str); 8] = [
    ("max_tokens", "maxTokens"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("seed", "seed"),
    ("stop", "stop"),
];

/// The chat of the cloud: the compartment, and the way in which a model is served.
#[derive(Clone, Debug)]
pub struct OciChat {
    /// The compartment.
    pub compartment_id: String,
    /// True if the model is that of a dedicated endpoint.
    pub dedicated: bool,
    /// True if it is one of Cohere's.
    pub cohere: bool,
}

impl Api for OciChat {
    /// Each region has an address of its own.
    fn base_url(&self) -> &'static str {
        ""
    }

    fn path(&self) -> &'static [&'static str] {
        &["20231130", "actions", "chat"]
    }

    fn body(
        &self,
        request: &ModelRequest,
        names: &WireNames,
        history: &History<'_>,
        more: &Map<String, Value>,
    ) -> Value {
        body(self, &request.model, &ChatCompletions::default().body(request, names, history, more))
    }

    fn absorb(&self, answer: &mut PartialAnswer, chunk: &Value, listener: &Listener) -> Result<(), String> {
        ChatCompletions::default().absorb(answer, &completion(chunk), listener)
    }
}

/// The body of a call from that of chat completions.
fn body(place: &OciChat, model: &str, requested: &Value) -> Value {
    let mut chat = if place.cohere { cohere(requested) } else { generic(requested) };
    for (name, own) in PARAMETERS {
        if let Some(value) = requested.get(name) {
            let own = if place.cohere && name == "stop" { "stopSequences" } else { own };
            chat[own] = value.clone();
        }
    }
    chat["isStream"] = false.into();
    let serving = match place.dedicated {
        true => json!({"servingType": "DEDICATED", "endpointId": model}),
        false => json!({"servingType": "ON_DEMAND", "modelId": model}),
    };
    json!({"compartmentId": place.compartment_id, "servingMode": serving, "chatRequest": chat})
}

fn generic(requested: &Value) -> Value {
    let messages: Vec<Value> = list(&requested["messages"]).iter().map(generic_message).collect();
    let mut chat = json!({"apiFormat": "GENERIC", "messages": messages});
    if let Some(tools) = requested["tools"].as_array() {
        let tool = |tool: &Value| {
            let of = &tool["function"];
            json!({"type": "FUNCTION", "name": of["name"], "description": of["description"], "parameters": of["parameters"]})
        };
        chat["tools"] = tools.iter().map(tool).collect();
        let choice = requested["tool_choice"].as_str().unwrap_or("auto").to_uppercase();
        chat["toolChoice"] = json!({"type": choice});
    }
    match requested["response_format"]["type"].as_str() {
        Some("json_schema") => {
            let schema = &requested["response_format"]["json_schema"]["schema"];
            chat["responseFormat"] = json!({"type": "JSON_SCHEMA", "jsonSchema": {"name": "answer", "schema": schema, "isStrict": false}});
        }
        Some(_) => chat["responseFormat"] = json!({"type": "JSON_OBJECT"}),
        None => {}
    }
    chat
}

fn generic_message(message: &Value) -> Value {
    let content: Vec<Value> = match &message["content"] {
        Value::String(text) => vec![json!({"type": "TEXT", "text": text})],
        Value::Array(parts) => parts
            .iter()
            .map(|part| match part["image_url"].as_object() {
                Some(image) => json!({"type": "IMAGE", "imageUrl": {"url": image.get("url")}}),
                None => json!({"type": "TEXT", "text": part["text"]}),
            })
            .collect(),
        _ => Vec::new(),
    };
    let role = message["role"].as_str().unwrap_or("user").to_uppercase();
    let mut own = json!({"role": role, "content": content});
    if let Some(calls) = message["tool_calls"].as_array() {
        let call = |call: &Value| {
            json!({"id": call["id"], "type": "FUNCTION", "name": call["function"]["name"],
                   "arguments": call["function"]["arguments"]})
        };
        own["toolCalls"] = calls.iter().map(call).collect();
    }
    if let Some(id) = message.get("tool_call_id") {
        own["toolCallId"] = id.clone();
    }
    own
}

/// Cohere's form has the newest message of the user apart, and the outcomes of its calls after it.
fn cohere(requested: &Value) -> Value {
    let messages = list(&requested["messages"]);
    let text = |message: &Value| match &message["content"] {
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    let (mut history, mut system, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for message in messages {
        match message["role"].as_str().unwrap_or_default() {
            "system" => system.push(text(message)),
            "assistant" => {
                let calls: Vec<Value> = list(&message["tool_calls"]).iter().map(cohere_call).collect();
                let mut own = json!({"role": "CHATBOT", "message": text(message)});
                if !calls.is_empty() {
                    own["toolCalls"] = calls.into();
                }
                history.push(own);
            }
            "tool" => {
                let mut calls = messages.iter().flat_map(|one| list(&one["tool_calls"]));
                let call = calls.rfind(|call| call["id"] == message["tool_call_id"]).map(cohere_call);
                results.push(json!({"call": call, "outputs": [{"output": text(message)}]}));
            }
            _ => {
                history.extend(results_of(&mut results));
                history.push(json!({"role": "USER", "message": text(message)}));
            }
        }
    }
    let newest = if results.is_empty() { history.pop() } else { None };
    let message = newest.map(|newest| newest["message"].clone()).unwrap_or_else(|| "".into());
    let mut chat = json!({"apiFormat": "COHERE", "message": message, "chatHistory": history});
    if !results.is_empty() {
        chat["toolResults"] = results.into();
    }
    if !system.is_empty() {
        chat["preambleOverride"] = system.join("\n\n").into();
    }
    if let Some(tools) = requested["tools"].as_array() {
        chat["tools"] = tools.iter().map(cohere_tool).collect();
    }
    match &requested["response_format"] {
        format if format["type"] == "json_schema" => {
            chat["responseFormat"] =
                json!({"type": "JSON_OBJECT", "schema": format["json_schema"]["schema"]});
        }
        format if format.is_object() => chat["responseFormat"] = json!({"type": "JSON_OBJECT"}),
        _ => {}
    }
    chat
}

fn results_of(results: &mut Vec<Value>) -> Option<Value> {
    let results = std::mem::take(results);
    (!results.is_empty()).then(|| json!({"role": "TOOL", "toolResults": results}))
}

fn cohere_call(call: &Value) -> Value {
    let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
    let parameters: Value = serde_json::from_str(arguments).unwrap_or_default();
    json!({"name": call["function"]["name"], "parameters": parameters})
}

fn cohere_tool(tool: &Value) -> Value {
    let of = &tool["function"];
    let required = list(&of["parameters"]["required"]);
    let properties = of["parameters"]["properties"].as_object().cloned().unwrap_or_default();
    let definitions: Map<String, Value> = properties
        .into_iter()
        .map(|(name, schema)| {
            let kind = match schema["type"].as_str() {
                Some("string") => "str",
                Some("integer") => "int",
                Some("number") => "float",
                Some("boolean") => "bool",
                Some("array") => "list",
                _ => "dict",
            };
            let is_required = required.contains(&Value::from(name.as_str()));
            let definition = json!({"type": kind, "description": schema["description"].as_str().unwrap_or_default(),
                                    "isRequired": is_required});
            (name, definition)
        })
        .collect();
    json!({"name": of["name"], "description": of["description"], "parameterDefinitions": definitions})
}

/// An answer in the form of chat completions.
fn completion(document: &Value) -> Value {
    let chat = &document["chatResponse"];
    let of = &chat["usage"];
    let usage = json!({"prompt_tokens": of["promptTokens"], "completion_tokens": of["completionTokens"]});
    let choice = match list(&chat["choices"]).first() {
        Some(choice) => {
            let call = |call: &Value| json!({"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}});
            let message = &choice["message"];
            let calls: Vec<Value> = list(&message["toolCalls"]).iter().map(call).collect();
            json!({"index": 0, "finish_reason": choice["finishReason"],
                   "message": {"content": message["content"], "tool_calls": calls}})
        }
        None if chat["text"].is_string() || chat["toolCalls"].is_array() => {
            let call =
                |call: &Value| json!({"function": {"name": call["name"], "arguments": call["parameters"]}});
            let calls: Vec<Value> = list(&chat["toolCalls"]).iter().map(call).collect();
            let reason = match chat["finishReason"].as_str() {
                Some("MAX_TOKENS") => "length",
                Some("ERROR_TOXIC") => "content_filter",
                _ => "stop",
            };
            json!({"index": 0, "finish_reason": reason, "message": {"content": chat["text"], "tool_calls": calls}})
        }
        None => return json!({"model": document["modelId"]}),
    };
    json!({"model": document["modelId"], "choices": [choice], "usage": usage})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::fixture::{provider, replay, tides};
    use crate::model::{Model as _, ModelAnswer, ModelError};
    use crate::oci::tests::{assert_signed, signer};

    async fn asked(cohere: bool, answer: &'static str) -> (Value, Result<ModelAnswer, ModelError>) {
        let server = replay(200, answer).await;
        let chat = OciChat { compartment_id: "ocid1.compartment".to_owned(), dedicated: cohere, cohere };
        let model = provider(&server, Box::new(chat), json!({})).signed_by(signer());
        let answered = model.answer(&tides()).await;
        let (path, headers, body) = server.seen(0);
        assert_eq!(path, "/v1/20231130/actions/chat");
        assert_signed(&headers, &format!("post {path}"), body.to_string().as_bytes());
        (body, answered)
    }

    /// AGS-44: the generic form, by the documentation of OCI Generative AI.
    #[tokio::test]
    async fn a_generic_model_is_asked_in_the_clouds_form() {
        let (body, answered) = asked(
            false,
            r#"{"modelId": "meta.llama", "chatResponse": {"apiFormat": "GENERIC", "choices": [{"index": 0, "finishReason":
               "tool_calls", "message": {"role": "ASSISTANT", "content": [{"type": "TEXT", "text": "I look."}], "toolCalls":
               [{"type": "FUNCTION", "id": "t1", "name": "get_tide", "arguments": "{\"harbour\": \"Husum\"}"}]}}],
               "usage": {"promptTokens": 30, "completionTokens": 12, "totalTokens": 42}}}"#,
        )
        .await;
        let chat = &body["chatRequest"];
        assert_eq!(
            (&body["compartmentId"], &body["servingMode"]["modelId"]),
            (&json!("ocid1.compartment"), &json!("m"))
        );
        let roles: Vec<_> = list(&chat["messages"]).iter().map(|one| one["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["SYSTEM", "USER", "ASSISTANT", "TOOL", "TOOL", "SYSTEM"]);
        assert_eq!(chat["messages"][1]["content"], json!([{"type": "TEXT", "text": "When is low tide?"}]));
        assert_eq!(chat["messages"][2]["toolCalls"][0]["name"], "get_tide");
        assert_eq!(chat["messages"][3]["toolCallId"], "c1");
        assert_eq!((&chat["maxTokens"], &chat["temperature"]), (&json!(100), &json!(0.25)));
        assert_eq!(
            (&chat["tools"][0]["type"], &chat["toolChoice"]["type"]),
            (&json!("FUNCTION"), &json!("AUTO"))
        );
        assert_eq!(chat["responseFormat"]["type"], "JSON_SCHEMA");
        let answer = answered.unwrap();
        assert_eq!(
            (answer.content.as_deref(), answer.tool_calls[0].name.as_str()),
            (Some("I look."), "get.tide")
        );
        assert_eq!(answer.usage.map(|usage| (usage.input, usage.output)), Some((30, 12)));
    }

    /// AGS-44: the form of Cohere's models.
    #[tokio::test]
    async fn a_model_of_cohere_is_asked_in_its_own_form() {
        let (body, answered) = asked(
            true,
            r#"{"modelId": "cohere.command", "chatResponse": {"apiFormat": "COHERE", "text": "At 14:07.", "finishReason":
               "COMPLETE", "usage": {"promptTokens": 9, "completionTokens": 4}}}"#,
        )
        .await;
        let chat = &body["chatRequest"];
        assert_eq!(body["servingMode"], json!({"servingType": "DEDICATED", "endpointId": "m"}));
        assert_eq!(chat["chatHistory"][0], json!({"role": "USER", "message": "When is low tide?"}));
        assert_eq!(chat["chatHistory"][1]["toolCalls"][0]["parameters"], json!({"harbour": "Husum"}));
        assert_eq!(chat["toolResults"][0]["call"]["name"], "get_tide");
        assert_eq!(chat["toolResults"][0]["outputs"], json!([{"output": "14:07"}]));
        assert_eq!(chat["tools"][0]["parameterDefinitions"]["harbour"]["type"], "str");
        assert_eq!(chat["preambleOverride"], "You know the tides.\n\nAnswer in JSON.");
        let answer = answered.unwrap();
        assert_eq!(answer.content.as_deref(), Some("At 14:07."));
    }

    #[tokio::test]
    async fn an_answer_without_a_choice_is_malformed() {
        let (_, answered) = asked(false, r#"{"modelId": "m", "chatResponse": {"choices": []}}"#).await;
        assert!(matches!(answered, Err(ModelError::Malformed(_))), "{answered:?}");
    }
}
