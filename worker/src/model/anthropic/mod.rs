//! The `anthropic` provider: Anthropic's messages API over HTTP.
//!
//! A demanded schema is sent as a tool that takes the answer, because every model of this provider can be
//! made to call a tool. The call is read as the text of the answer. The provider retries nothing: the turn
//! decides how to treat a failure.

mod demand;
mod request;
#[cfg(test)]
mod tests;

use crate::model::http::{
    Api, History, Item, PartialAnswer, WireNames, count, members_beside, unknown_end, without_nulls,
};
use crate::model::{FinishReason, Listener, ModelAnswer, ModelRequest, Usage};
use demand::Demand;
use serde_json::{Map, Value, json};

/// The messages API. `headers` of the configuration may set another `anthropic-version`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Messages;

impl Api for Messages {
    fn base_url(&self) -> &'static str {
        "https://api.anthropic.com/v1"
    }

    fn path(&self) -> &'static [&'static str] {
        &["messages"]
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn own_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn names(&self, request: &ModelRequest) -> WireNames {
        Demand::of(request).names(request)
    }

    fn body(
        &self,
        request: &ModelRequest,
        names: &WireNames,
        history: &History<'_>,
        _: &Map<String, Value>,
    ) -> Value {
        request::body(request, names, history)
    }

    fn absorb(&self, answer: &mut PartialAnswer, event: &Value, listener: &Listener) -> Result<(), String> {
        let place = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => begin(answer, &event["message"]),
            "content_block_start" => {
                let block = block(&event["content_block"]);
                listener.hear(&block.text);
                *answer.item(place)? = block;
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let piece = |name: &str| delta[name].as_str().unwrap_or_default();
                let block = answer.item(place)?;
                match delta["type"].as_str() {
                    Some("text_delta") => {
                        block.text.push_str(piece("text"));
                        listener.hear(piece("text"));
                    }
                    Some("input_json_delta") => block.arguments.push_str(piece("partial_json")),
                    Some("citations_delta") => {
                        let citations = json!({"citations": [delta["citation"]]});
                        block.add_members(members_beside(&citations, &[]));
                    }
                    // Pieces of thinking, and its signature.
                    _ => block.add_members(members_beside(delta, &["type"])),
                }
            }
            "content_block_stop" => close_block(answer.item(place)?),
            "message_delta" => {
                add_counts(answer, &event["usage"]);
                take_end(answer, &event["delta"])?;
            }
            "message_stop" => answer.is_over = true,
            // `ping`, and events that this version does not know.
            _ => {}
        }
        Ok(())
    }

    fn absorb_whole(&self, answer: &mut PartialAnswer, message: &Value) -> Result<(), String> {
        let content = message["content"].as_array().ok_or("the answer holds no content")?;
        answer.set_items(content.iter().map(block))?;
        begin(answer, message);
        take_end(answer, message)
    }

    fn finish(
        &self,
        answer: PartialAnswer,
        names: &WireNames,
        provider: &str,
        request: &ModelRequest,
    ) -> Result<ModelAnswer, String> {
        Ok(Demand::of(request).read(answer.finish(names, provider, &request.model)?))
    }
}

fn begin(answer: &mut PartialAnswer, message: &Value) {
    answer.has_begun = true;
    answer.take_origin(message);
    add_counts(answer, &message["usage"]);
}

/// Returns a text, a call, or a block that is not shown, such as thinking.
fn block(said: &Value) -> Item {
    let mut block = Item::new(said["type"] == "tool_use");
    if block.is_call {
        said["id"].as_str().unwrap_or_default().clone_into(&mut block.id);
        block.add_members(members_beside(said, &["type", "id", "name", "input"]));
        said["name"].as_str().unwrap_or_default().clone_into(&mut block.name);
        // A stream begins with an empty object and sends the arguments later as text.
        if said["input"].as_object().is_none_or(|input| !input.is_empty()) && !said["input"].is_null() {
            block.arguments = said["input"].to_string();
        }
    } else if said["type"] == "text" {
        said["text"].as_str().unwrap_or_default().clone_into(&mut block.text);
        block.add_members(members_beside(said, &["type", "text"]));
    } else {
        // Also what is empty: a signature may belong to thinking that is left out.
        block.add_members(without_nulls(said.clone()));
    }
    block
}

/// Ends a block. The input of a tool that the provider itself calls came as pieces of its text.
fn close_block(block: &mut Item) {
    if !block.is_call && !block.arguments.is_empty() {
        let input = serde_json::from_str(&std::mem::take(&mut block.arguments)).unwrap_or_else(|_| json!({}));
        block.set_member("input", input);
    }
}

/// Takes the reason why the model stopped, or paused.
fn take_end(answer: &mut PartialAnswer, said: &Value) -> Result<(), String> {
    answer.is_paused |= said["stop_reason"] == "pause_turn";
    answer.ended = ended(said)?.or(answer.ended);
    Ok(())
}

/// Returns the reason why the model stopped; `None` while it has not.
///
/// # Errors
/// A sentence: the answer is not complete, or it is unknown if it is.
fn ended(said: &Value) -> Result<Option<FinishReason>, String> {
    Ok(Some(match said["stop_reason"].as_str().unwrap_or_default() {
        "" => return Ok(None),
        "end_turn" | "stop_sequence" | "pause_turn" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        other => return Err(unknown_end(other)),
    }))
}

/// Merges the counts of an event. They cover the answer so far; an absent count keeps its value. This provider
/// counts tokens read from and written to its cache beside the input, not as a part of it.
fn add_counts(answer: &mut PartialAnswer, said: &Value) {
    let counts = said.as_object().into_iter().flatten().filter(|(_, said)| said.is_number());
    answer.counts.extend(counts.map(|(name, said)| (name.clone(), said.clone())));
    let of = |name: &str| answer.counts.get(name).and_then(count);
    let cache = |name: &str| of(name).unwrap_or(0).max(0);
    let cached_input = cache("cache_read_input_tokens");
    answer.usage = of("input_tokens").zip(of("output_tokens")).map(|(input, output)| {
        let input = input.saturating_add(cache("cache_creation_input_tokens")).saturating_add(cached_input);
        Usage { cached_input, ..Usage::of(input, output) }
    });
}
