//! Tests of what a provider attaches to its answers: its maker gets it back as it came, and no other one gets it.

use super::fixture::{Server, document, events, provider, replay, request};
use super::{Api, HttpModel};
use crate::model::anthropic::Messages;
use crate::model::openai::ChatCompletions;
use crate::model::responses::Responses;
use crate::model::{FinishReason, Model as _, ModelAnswer, ModelError, ModelRequest, Usage};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::message::{Message, RequestedCall, Role};

/// Returns a stream of events, each with its type as its name if it has one.
fn stream(items: &Value) -> &'static str {
    let event = |item: &Value| match item["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {item}\n\n"),
        None => format!("data: {item}\n\n"),
    };
    items.as_array().unwrap().iter().map(event).collect::<String>().leak()
}

fn whole(document: &Value) -> &'static str {
    document.to_string().leak()
}

/// Returns the request after an answer: with the answer, as a turn stores it, and the outcomes of its calls.
fn next(answer: &ModelAnswer) -> ModelRequest {
    let own = |(nth, call): (usize, &crate::model::AskedCall)| RequestedCall {
        call_id: format!("our{nth}").as_str().into(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    };
    let tool_calls: Vec<_> = answer.tool_calls.iter().enumerate().map(own).collect();
    let outcomes: Vec<_> =
        tool_calls.iter().map(|call| Arc::new(Message::tool(call.call_id.clone(), "seen"))).collect();
    let said = Message {
        tool_calls,
        attached: answer.attached.clone(),
        ..Message::text(Role::Assistant, answer.content.clone().unwrap_or_default())
    };
    // Through the store and back.
    let said: Message = serde_json::from_str(&serde_json::to_string(&said).unwrap()).unwrap();
    let mut request = request();
    request.messages.push(Arc::new(said));
    request.messages.extend(outcomes);
    request
}

/// Asks a server that answers with this sample, and asks it again. Returns the messages of the second request, without the
/// user's, and those that another model gets.
async fn second(api: fn() -> Box<dyn Api>, sample: &'static str) -> (Value, Value) {
    let server = replay(200, sample).await;
    let model: HttpModel = provider(&server, api(), json!({}));
    let answer = model.answer(&request()).await.unwrap();
    let next = next(&answer);
    // The answer to the second request does not matter.
    drop(model.answer(&next).await);
    drop(model.answer(&ModelRequest { model: "other".into(), ..next }).await);
    let messages = |nth: usize| {
        let body = server.seen(nth).2;
        let of = if body["input"].is_array() { &body["input"] } else { &body["messages"] };
        of.as_array().unwrap()[1..].iter().cloned().collect::<Value>()
    };
    (messages(1), messages(2))
}

const ARGUMENTS: &str = "{\"city\":\"Husum\"}";

/// Gemini's signatures are members of calls, DeepSeek's reasoning is one of the message, and Mistral's ids have nine characters.
#[tokio::test]
async fn chat_completions_get_their_members_back() {
    let extra = json!({"google": {"thought_signature": "c2lnbmVk"}});
    let function = json!({"name": "get_weather", "arguments": ARGUMENTS});
    let call = json!({"id": "Ab3dEf6hI", "type": "function", "function": function, "extra_content": extra});
    let message =
        json!({"role": "assistant", "content": null, "reasoning_content": "I look.", "tool_calls": [call]});
    let one = whole(&json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}));
    let delta = |delta: Value, reason: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let mut first = call.clone();
    (first["index"], first["function"]["arguments"]) = (json!(0), json!("{\"city\":"));
    let rest = json!({"index": 0, "function": {"arguments": "\"Husum\"}"}});
    let streamed = stream(&json!([
        delta(json!({"role": "assistant", "content": "", "reasoning_content": "I "}), Value::Null),
        delta(json!({"role": "assistant", "reasoning_content": "look."}), Value::Null),
        delta(json!({"tool_calls": [first]}), Value::Null),
        delta(json!({"tool_calls": [rest]}), json!("tool_calls")),
    ]));
    for sample in [one, streamed] {
        let (own, other) = second(|| Box::new(ChatCompletions::default()), sample).await;
        assert_eq!(own, json!([message, {"role": "tool", "tool_call_id": "Ab3dEf6hI", "content": "seen"}]));
        let clean = json!({"id": "our0", "type": "function", "function": function});
        let clean = json!({"role": "assistant", "content": null, "tool_calls": [clean]});
        assert_eq!(other, json!([clean, {"role": "tool", "tool_call_id": "our0", "content": "seen"}]));
    }
}

/// Providers refuse reasoning that belongs to no call; other members of an answer go back.
#[tokio::test]
async fn reasoning_goes_back_only_beside_calls() {
    let message = json!({"role": "assistant", "content": "Rain.", "reasoning_content": "Clouds.", "extra_content": {"s": 1}});
    let sample = whole(&json!({"choices": [{"message": message, "finish_reason": "stop"}]}));
    let (own, other) = second(|| Box::new(ChatCompletions::default()), sample).await;
    assert_eq!(own, json!([{"role": "assistant", "content": "Rain.", "extra_content": {"s": 1}}]));
    assert_eq!(other, json!([{"role": "assistant", "content": "Rain."}]));
}

#[tokio::test]
async fn responses_get_their_reasoning_back() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"});
    let text = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
                      "content": [{"type": "output_text", "text": "I look.", "annotations": []}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather",
                      "arguments": ARGUMENTS, "status": "completed"});
    let response = |output: Value| json!({"id": "resp_1", "status": "completed", "output": output});
    let output = json!([reasoning, text, call]);
    let opened = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let streamed = stream(&json!([
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.done", "output_index": 1, "item": text},
        {"type": "response.output_item.done", "output_index": 2, "item": call},
        {"type": "response.completed", "response": response(json!([]))},
    ]));
    let outcome = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "seen"});
    let clean = json!([
        {"type": "message", "role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "our0", "name": "get_weather", "arguments": ARGUMENTS},
        outcome("our0"),
    ]);
    for sample in [whole(&response(output)), streamed] {
        let (own, other) = second(|| Box::new(Responses), sample).await;
        assert_eq!(own, json!([reasoning, text, call, outcome("call_1")]));
        assert_eq!(other, clean);
    }
    // Reasoning that is not encrypted means nothing to a provider that has kept nothing, and neither do ids beside it.
    let (own, _) = second(|| Box::new(Responses), whole(&response(json!([opened, call])))).await;
    let bare =
        json!({"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": ARGUMENTS});
    assert_eq!(own, json!([bare, outcome("call_1")]));
}

/// A model that does not reason refuses to be asked for its reasoning: it is asked without, now and from then on.
#[tokio::test]
async fn a_model_that_does_not_reason_is_asked_without() {
    let answer = whole(&json!({"id": "r", "status": "completed", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]}]}));
    let refusal = r#"{"error": {"message": "Encrypted content is not supported with this model.", "param": "include"}}"#;
    let asked = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move || {
        let asked = asked.fetch_add(1, Ordering::Relaxed);
        async move { if asked == 0 { document(400, refusal) } else { document(200, answer) } }
    })
    .await;
    let model = provider(&server, Box::new(Responses), json!({}));
    for _ in 0..2 {
        assert_eq!(model.answer(&request()).await.unwrap().content.as_deref(), Some("Rain."));
    }
    let includes = |nth: usize| server.seen(nth).2["include"].clone();
    assert_eq!(
        [includes(0), includes(1), includes(2)],
        [json!(["reasoning.encrypted_content"]), Value::Null, Value::Null]
    );
}

#[tokio::test]
async fn messages_get_their_thinking_back() {
    let thinking = json!({"type": "thinking", "thinking": "I look.", "signature": "c2lnbmVk"});
    let redacted = json!({"type": "redacted_thinking", "data": "ZW5j"});
    let text = json!({"type": "text", "text": "I look it up."});
    let call =
        json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Husum"}});
    let content = json!([thinking, redacted, text, call]);
    let one = whole(&json!({"type": "message", "content": content, "stop_reason": "tool_use"}));
    let start = |index: usize, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: usize, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let streamed = stream(&json!([
        {"type": "message_start", "message": {"id": "m"}},
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "I "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "look."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2lnbmVk"})),
        start(1, redacted.clone()),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "I look it up."})),
        start(3, json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ARGUMENTS})),
        {"type": "content_block_stop", "index": 3},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]));
    let outcome = |id: &str| {
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "seen"});
        json!({"role": "user", "content": [result]})
    };
    for sample in [one, streamed] {
        let (own, other) = second(|| Box::new(Messages), sample).await;
        assert_eq!(own, json!([{"role": "assistant", "content": content}, outcome("toolu_1")]));
        let mut clean = call.clone();
        clean["id"] = json!("our0");
        assert_eq!(other, json!([{"role": "assistant", "content": [text, clean]}, outcome("our0")]));
    }
}

/// An answer that pauses continues with what was said so far, verbatim, and both parts are one answer.
#[tokio::test]
async fn a_pause_continues_the_answer() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "price"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "ZW5j"}]});
    let text = |text: &str| json!({"type": "text", "text": text});
    let said = |content: Value, reason: &str, output: i64| {
        whole(&json!({"type": "message", "content": content, "stop_reason": reason,
                      "usage": {"input_tokens": 10, "output_tokens": output}}))
    };
    let first = json!([search, found, text("Pay 100")]);
    let parts = [said(first.clone(), "pause_turn", 30), said(json!([text("00 EUR")]), "end_turn", 5)];
    let asked = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move || {
        let nth = asked.fetch_add(1, Ordering::Relaxed);
        async move { document(200, parts[nth]) }
    })
    .await;
    let answer = provider(&server, Box::new(Messages), json!({})).answer(&request()).await.unwrap();
    assert_eq!(answer.content.as_deref(), Some("Pay 10000 EUR"));
    assert_eq!((answer.finish_reason, answer.usage), (FinishReason::Stop, Some(Usage::of(20, 35))));
    let body = server.seen(1).2;
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": first}));
    assert_eq!(body["max_tokens"], 70);
}

/// A model that never continues is an error that ends, and the bound on the answer holds over its parts.
#[tokio::test]
async fn pauses_end() {
    let paused = |output: i64| {
        let content = json!([{"type": "server_tool_use", "id": "s", "name": "n", "input": {}}, {"type": "text", "text": "hm "}]);
        whole(
            &json!({"content": content, "stop_reason": "pause_turn", "usage": {"input_tokens": 1, "output_tokens": output}}),
        )
    };
    let server = replay(200, paused(1)).await;
    let error = provider(&server, Box::new(Messages), json!({})).answer(&request()).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Malformed(text) if text.contains("paused more than 16")),
        "{error:?}"
    );
    let server = replay(200, paused(60)).await;
    let answer = provider(&server, Box::new(Messages), json!({})).answer(&request()).await.unwrap();
    assert_eq!((answer.content.as_deref(), answer.finish_reason), (Some("hm hm "), FinishReason::Length));
    let streamed = stream(&json!([
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s", "name": "n", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"q\": 1}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "pause_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]));
    let server = Server::start(move || async move { events(streamed) }).await;
    drop(provider(&server, Box::new(Messages), json!({})).answer(&request()).await);
    let input = &server.seen(1).2["messages"][1]["content"][0]["input"];
    assert_eq!(*input, json!({"q": 1}));
}
