//! Builds an answer from the items of a stream, or from one whole response.

use crate::model::http::{self, Origin, WireNames, arguments, usage};
use crate::model::{AskedCall, FinishReason, Listener, ModelAnswer, Usage};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most items of one answer; an answer with more is refused as malformed.
const MOST_ITEMS: usize = 256;

/// The part of an answer that has arrived.
#[derive(Debug, Default)]
pub struct ResponsesAssembly {
    /// The items by the provider's `output_index`, which gives their order.
    items: BTreeMap<u64, Item>,
    usage: Option<Usage>,
    origin: Origin,
    /// The ending: `completed`, or the reason why the answer is incomplete.
    ended: Option<String>,
}

/// A message, a call, or an item that is not shown, such as reasoning.
#[derive(Debug, Default)]
struct Item {
    is_call: bool,
    name: String,
    arguments: String,
    text: String,
    refusal: String,
}

impl Item {
    fn of(said: &Value) -> Self {
        let mut item = Self { is_call: said["type"] == "function_call", ..Self::default() };
        if item.is_call {
            said["name"].as_str().unwrap_or_default().clone_into(&mut item.name);
            match &said["arguments"] {
                Value::String(text) => item.arguments.clone_from(text),
                Value::Null => {}
                whole => item.arguments = whole.to_string(),
            }
        }
        for part in said["content"].as_array().map(Vec::as_slice).unwrap_or_default() {
            match part["type"].as_str() {
                Some("output_text") => item.text.push_str(part["text"].as_str().unwrap_or_default()),
                Some("refusal") => item.refusal.push_str(part["refusal"].as_str().unwrap_or_default()),
                _ => {}
            }
        }
        item
    }

    fn held(&self) -> usize {
        self.name.len() + self.arguments.len() + self.text.len() + self.refusal.len()
    }
}

impl http::Assembly for ResponsesAssembly {
    fn absorb(&mut self, event: &Value, listener: &Listener) -> Result<(), String> {
        let delta = event["delta"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" | "response.output_item.done" => {
                let whole = Item::of(&event["item"]);
                let item = self.item(event)?;
                // Some servers close an item without repeating its pieces.
                if whole.held() >= item.held() {
                    *item = whole;
                }
            }
            "response.output_text.delta" => {
                self.item(event)?.text.push_str(delta);
                listener.hear(delta);
            }
            "response.refusal.delta" => self.item(event)?.refusal.push_str(delta),
            "response.function_call_arguments.delta" => self.item(event)?.arguments.push_str(delta),
            "response.created" | "response.in_progress" => self.origin.take_in(&event["response"]),
            "response.completed" | "response.incomplete" => self.absorb_whole(&event["response"])?,
            // Events that are not shown, or that this version does not know.
            _ => {}
        }
        Ok(())
    }

    fn absorb_whole(&mut self, response: &Value) -> Result<(), String> {
        self.origin.take_in(response);
        if let Some(usage) = usage(&response["usage"], "input", "output") {
            self.usage = Some(usage);
        }
        let output = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
        if output.len() > MOST_ITEMS {
            return Err(too_many());
        }
        // The end of a stream may omit items that came before.
        if !output.is_empty() {
            self.items = (0..).zip(output.iter().map(Item::of)).collect();
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        self.ended = match response["status"].as_str() {
            Some("completed") => Some("completed".to_owned()),
            Some("incomplete") => Some(reason.unwrap_or("incomplete").to_owned()),
            other => return Err(format!("the answer is {}", other.unwrap_or("no response"))),
        };
        Ok(())
    }

    fn failure<'a>(&self, event: &'a Value) -> Option<&'a Value> {
        let response = &event["response"];
        match event["type"].as_str() {
            Some("error") => Some(if event["error"].is_null() { event } else { &event["error"] }),
            Some("response.failed") if response["error"].is_null() => Some(response),
            _ => [&event["error"], &response["error"]].into_iter().find(|error| !error.is_null()),
        }
    }

    fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    fn held(&self) -> usize {
        self.items.values().map(Item::held).sum()
    }
}

fn too_many() -> String {
    format!("the answer has more than {MOST_ITEMS} items")
}

impl ResponsesAssembly {
    fn item(&mut self, event: &Value) -> Result<&mut Item, String> {
        let index = event["output_index"].as_u64().unwrap_or(0);
        if self.items.len() >= MOST_ITEMS && !self.items.contains_key(&index) {
            return Err(too_many());
        }
        Ok(self.items.entry(index).or_default())
    }

    /// Returns the answer; `asked_model` is its model if the provider names none.
    pub(super) fn finish(self, names: &WireNames, asked_model: &str) -> Result<ModelAnswer, String> {
        let (mut content, mut refusal, mut tool_calls) = (String::new(), String::new(), Vec::new());
        for item in self.items.into_values() {
            content.push_str(&item.text);
            refusal.push_str(&item.refusal);
            if item.is_call {
                if item.name.is_empty() {
                    return Err("the answer asks for a tool without naming it".to_owned());
                }
                tool_calls
                    .push(AskedCall { name: names.own(&item.name), arguments: arguments(item.arguments) });
            }
        }
        let refused = content.is_empty() && tool_calls.is_empty() && !refusal.is_empty();
        let finish_reason = match self.ended.as_deref() {
            Some("content_filter") => FinishReason::ContentFilter,
            _ if refused => FinishReason::ContentFilter,
            Some("completed") if tool_calls.is_empty() => FinishReason::Stop,
            Some("completed") => FinishReason::ToolUse,
            _ => FinishReason::Length,
        };
        let content = if refused { refusal } else { content };
        Ok(ModelAnswer {
            content: (!content.is_empty()).then_some(content),
            tool_calls,
            finish_reason,
            usage: self.usage,
            model: self.origin.model.unwrap_or_else(|| asked_model.to_owned()),
            response_id: self.origin.response_id,
        })
    }
}
