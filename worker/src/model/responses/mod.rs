//! The `openai-responses` provider: OpenAI's responses API over HTTP.
//!
//! Every request holds the whole conversation. The provider stores nothing (`store: false`), unless the configuration
//! demands that it keeps answers: then it finishes an answer in the background, which can be fetched by its id. The
//! provider retries nothing: the turn decides how to treat a failure.

mod request;
#[cfg(test)]
mod tests;

use crate::model::http::{
    Api, History, Item, PartialAnswer, WireNames, list, members_beside, unknown_end, usage, without_nulls,
};
use crate::model::{FinishReason, Listener, ModelRequest};
use serde_json::{Map, Value};

/// The responses API.
#[derive(Clone, Copy, Debug, Default)]
pub struct Responses;

impl Api for Responses {
    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self) -> &'static [&'static str] {
        &["responses"]
    }

    fn body(
        &self,
        request: &ModelRequest,
        names: &WireNames,
        history: &History<'_>,
        more: &Map<String, Value>,
    ) -> Value {
        request::body(request, names, history, more)
    }

    fn absorb(&self, answer: &mut PartialAnswer, event: &Value, listener: &Listener) -> Result<(), String> {
        let place = event["output_index"].as_u64().unwrap_or(0);
        let delta = event["delta"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" | "response.output_item.done" => {
                let whole = item(&event["item"]);
                let known = answer.item(place)?;
                // Some servers close an item without repeating its pieces.
                match whole.held() >= known.held() {
                    true => *known = whole,
                    false => known.take_members(whole),
                }
            }
            "response.output_text.delta" => {
                answer.item(place)?.text.push_str(delta);
                listener.hear(delta);
            }
            "response.refusal.delta" => answer.item(place)?.refusal.push_str(delta),
            "response.function_call_arguments.delta" => answer.item(place)?.arguments.push_str(delta),
            "response.created" | "response.in_progress" => {
                answer.take_origin(&event["response"]);
                listener.note_id(event["response"]["id"].as_str().unwrap_or_default());
            }
            "response.completed" | "response.incomplete" => self.absorb_whole(answer, &event["response"])?,
            // Events that are not shown, or that this version does not know.
            _ => {}
        }
        Ok(())
    }

    fn absorb_whole(&self, answer: &mut PartialAnswer, response: &Value) -> Result<(), String> {
        answer.take_origin(response);
        answer.usage = usage(&response["usage"], "input", "output").or(answer.usage);
        let output = list(&response["output"]);
        // The end of a stream may omit items that came before.
        if !output.is_empty() {
            answer.set_items(output.iter().map(item))?;
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        answer.ended = Some(match (response["status"].as_str(), reason) {
            (Some("completed"), _) => FinishReason::Stop,
            (Some("incomplete"), Some("content_filter")) => FinishReason::ContentFilter,
            (Some("incomplete"), None | Some("max_output_tokens" | "max_tokens")) => FinishReason::Length,
            (Some("incomplete"), Some(other)) => return Err(unknown_end(other)),
            (other, _) => return Err(format!("the answer is {}", other.unwrap_or("no response"))),
        });
        (answer.has_begun, answer.is_over) = (true, true);
        Ok(())
    }

    /// Models that do not reason, and servers of others, may refuse to be asked for the encrypted reasoning.
    fn remove_refused(&self, body: &mut Value, refusal: &str) -> bool {
        let is_about_it = ["include", "ncrypted"].iter().any(|word| refusal.contains(word));
        is_about_it && body.as_object_mut().is_some_and(|body| body.remove("include").is_some())
    }

    fn can_keep(&self) -> bool {
        true
    }

    fn is_in_progress(&self, response: &Value) -> bool {
        matches!(response["status"].as_str(), Some("queued" | "in_progress"))
    }

    fn failure<'a>(&self, event: &'a Value) -> Option<&'a Value> {
        let response = &event["response"];
        match event["type"].as_str() {
            Some("error") => Some(if event["error"].is_null() { event } else { &event["error"] }),
            Some("response.failed") if response["error"].is_null() => Some(response),
            _ => [&event["error"], &response["error"]].into_iter().find(|error| !error.is_null()),
        }
    }
}

/// Returns a message, a call, or an item that is not shown, such as reasoning.
fn item(said: &Value) -> Item {
    let mut item = Item::new(said["type"] == "function_call");
    if item.is_call {
        said["call_id"].as_str().unwrap_or_default().clone_into(&mut item.id);
        item.add_members(members_beside(said, &["type", "call_id", "name", "arguments"]));
        said["name"].as_str().unwrap_or_default().clone_into(&mut item.name);
        item.add_arguments(&said["arguments"]);
    }
    for part in list(&said["content"]) {
        match part["type"].as_str() {
            Some("output_text") => item.text.push_str(part["text"].as_str().unwrap_or_default()),
            Some("refusal") => item.refusal.push_str(part["refusal"].as_str().unwrap_or_default()),
            _ => {}
        }
    }
    match said["type"].as_str() {
        Some("function_call") => {}
        Some("message") => item.add_members(members_beside(said, &["type", "role", "content"])),
        _ => item.add_members(without_nulls(said.clone())),
    }
    item
}
