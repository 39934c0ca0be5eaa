//! The `openai` provider: chat completions over HTTP, the API of OpenAI, vLLM, Ollama, llama.cpp and many
//! gateways.
//!
//! The request asks for a stream, so that a lost connection is noticed during the answer. An answer in one
//! piece is accepted as well. The provider retries nothing: the turn decides how to treat a failure.

mod oci;
mod refused_members;
mod request;
#[cfg(test)]
mod tests;

pub use oci::OciChat;

use crate::model::http::{
    Api, History, MaxTokensFields, PartialAnswer, ResponseFormat, WireNames, list, members_beside,
    unknown_end, usage,
};
use crate::model::{FinishReason, Listener, ModelRequest, Usage};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The most tool calls of one answer; an answer with more is refused as malformed.
const MOST_CALLS: u64 = 128;
/// The place of the text in an answer, before all calls.
const TEXT: u64 = 0;

/// Chat completions, in the form that a provider supports.
#[derive(Clone, Debug, Default)]
pub struct ChatCompletions {
    /// The form in which the API receives the demand for a form of the answer.
    pub response_format: ResponseFormat,
    /// The provider's names for the bound on the answer.
    pub max_tokens_field: MaxTokensFields,
}

impl Api for ChatCompletions {
    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self) -> &'static [&'static str] {
        &["chat", "completions"]
    }

    fn body(
        &self,
        request: &ModelRequest,
        names: &WireNames,
        history: &History<'_>,
        more: &Map<String, Value>,
    ) -> Value {
        request::body(request, self, (names, history), more)
    }

    /// Models differ in the name of the bound, and some refuse the members that they attached themselves.
    fn remove_refused(&self, body: &mut Value, refusal: &str) -> bool {
        refused_members::swap_bound(body, refusal) | refused_members::drop_members(body, refusal)
    }

    /// A whole answer differs from a chunk in one word only.
    fn absorb(&self, answer: &mut PartialAnswer, chunk: &Value, listener: &Listener) -> Result<(), String> {
        answer.take_origin(chunk);
        // A later chunk may count what an earlier one did not, or nothing.
        answer.usage = counted(chunk).into_iter().chain(answer.usage).max_by_key(|usage| usage.total());
        let mut choices = list(&chunk["choices"]).iter();
        let Some(choice) = choices.find(|choice| choice["index"].as_u64().unwrap_or(0) == 0) else {
            return Ok(());
        };
        answer.has_begun = true;
        let said = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        let (text, item) = (text(&said["content"]), answer.item(TEXT)?);
        item.text.push_str(&text);
        item.refusal.push_str(&self::text(&said["refusal"]));
        item.add_members(members_beside(
            said,
            &["role", "content", "refusal", "tool_calls", "function_call", "usage"],
        ));
        list(&said["tool_calls"]).iter().try_for_each(|call| absorb_call(answer, call))?;
        listener.hear(&text);
        // Last, so that an error has the text before it.
        answer.ended = ended(choice["finish_reason"].as_str().unwrap_or_default())?.or(answer.ended);
        Ok(())
    }
}

/// Returns the reason why the model stopped, in the words of the servers and gateways with this API; `None` while it has not.
///
/// # Errors
/// A sentence: the answer is not complete, or it is unknown if it is.
fn ended(reason: &str) -> Result<Option<FinishReason>, String> {
    Ok(Some(match reason {
        "" => return Ok(None),
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => FinishReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolUse,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" | "refusal" | "safety" => FinishReason::ContentFilter,
        other => return Err(unknown_end(other)),
    }))
}

/// Returns the usage. Some servers and gateways put it into the choice, its message or a member of their own.
fn counted(chunk: &Value) -> Option<Usage> {
    let choice = &chunk["choices"][0];
    let places = [chunk, choice, &choice["delta"], &choice["message"], &chunk["x_groq"]];
    let found = places.into_iter().filter_map(|place| usage(&place["usage"], "prompt", "completion"));
    found.max_by_key(|usage| usage.total())
}

/// Returns a text, or the texts of a list of parts.
fn text(said: &Value) -> Cow<'_, str> {
    match said {
        Value::String(text) => text.into(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => "".into(),
    }
}

fn absorb_call(answer: &mut PartialAnswer, call: &Value) -> Result<(), String> {
    let function = &call["function"];
    let id = call["id"].as_str().unwrap_or_default();
    let name = function["name"].as_str().unwrap_or_default();
    let index = call["index"].as_u64();
    let place = place(answer, index, (id, name), &function["arguments"])?;
    let item = answer.item(place)?;
    (item.is_call, item.index) = (true, item.index.or(index));
    if item.id.is_empty() {
        id.clone_into(&mut item.id);
    }
    // Some servers repeat the name in every piece, so the first one is kept.
    if item.name.is_empty() {
        name.clone_into(&mut item.name);
    }
    item.add_arguments(&function["arguments"]);
    item.add_members(members_beside(call, &["index", "id", "type", "function"]));
    let more = members_beside(function, &["name", "arguments"]);
    if !more.is_empty() {
        item.add_members([("function".to_owned(), more.into())].into_iter().collect());
    }
    Ok(())
}

/// Returns the place of a piece of a call. Some servers omit the index, and others send 0 for every call. So a new id or another
/// name begins a new call, and so does more of one whose arguments are a whole object.
fn place(
    answer: &PartialAnswer,
    index: Option<u64>,
    (id, name): (&str, &str),
    arguments: &Value,
) -> Result<u64, String> {
    let mut calls = answer.calls().rev();
    let last = answer.calls().next_back();
    let known = match index {
        Some(_) => calls.find(|(_, call)| call.index == index),
        None if id.is_empty() && name.is_empty() => last,
        None => None,
    };
    let is_same = |new: &str, known: &str| new.is_empty() || known.is_empty() || new == known;
    let begins = id.is_empty() && !name.is_empty() && !is_nothing(arguments);
    if let Some((place, call)) = known
        && is_same(id, &call.id)
        && is_same(name, &call.name)
        && !(begins && is_whole(&call.arguments))
    {
        return Ok(place);
    }
    match last.map_or(TEXT, |(place, _)| place) {
        MOST_CALLS => Err(format!("the answer asks for more than {MOST_CALLS} tool calls")),
        last => Ok(last + 1),
    }
}

/// Returns true if a piece adds nothing to the arguments of a call.
fn is_nothing(arguments: &Value) -> bool {
    arguments.is_null() || arguments.as_str().is_some_and(str::is_empty)
}

/// Returns true if arguments are complete.
fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}
