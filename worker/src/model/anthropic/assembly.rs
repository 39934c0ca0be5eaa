//! Builds an answer from the blocks of a stream, or from one whole message.

use super::demand::Demand;
use crate::model::http::{self, Origin, WireNames, arguments, count};
use crate::model::{AskedCall, FinishReason, Listener, ModelAnswer, Usage};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most blocks of one answer; an answer with more is refused as malformed.
const MOST_BLOCKS: usize = 256;

/// The part of an answer that has arrived.
#[derive(Debug, Default)]
pub struct AnthropicAssembly {
    begun: bool,
    /// The blocks by the provider's `index`, which gives their order.
    blocks: BTreeMap<u64, Block>,
    counts: Counts,
    origin: Origin,
    stop_reason: Option<String>,
    over: bool,
}

/// A text, a call, or a block that is not shown, such as thinking.
#[derive(Debug, Default)]
struct Block {
    is_call: bool,
    name: String,
    arguments: String,
    text: String,
}

/// The provider's token counts, under the provider's names.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    input: Option<i64>,
    written_to_cache: i64,
    read_from_cache: i64,
    output: Option<i64>,
}

impl Block {
    fn of(said: &Value) -> Self {
        let mut block = Self { is_call: said["type"] == "tool_use", ..Self::default() };
        if block.is_call {
            said["name"].as_str().unwrap_or_default().clone_into(&mut block.name);
            // A stream begins with an empty object and sends the arguments later as text.
            if said["input"].as_object().is_none_or(|input| !input.is_empty()) && !said["input"].is_null() {
                block.arguments = said["input"].to_string();
            }
        } else if said["type"] == "text" {
            said["text"].as_str().unwrap_or_default().clone_into(&mut block.text);
        }
        block
    }

    fn held(&self) -> usize {
        self.name.len() + self.arguments.len() + self.text.len()
    }
}

impl Counts {
    /// Merges the counts of an event. They cover the answer so far; an absent count keeps its value.
    fn take_in(&mut self, said: &Value) {
        self.input = count(&said["input_tokens"]).or(self.input);
        self.output = count(&said["output_tokens"]).or(self.output);
        self.written_to_cache = count(&said["cache_creation_input_tokens"]).unwrap_or(self.written_to_cache);
        self.read_from_cache = count(&said["cache_read_input_tokens"]).unwrap_or(self.read_from_cache);
    }

    /// Returns the usage. This provider counts tokens read from and written to its cache beside the input,
    /// not as a part of it.
    fn usage(self) -> Option<Usage> {
        let cached_input = self.read_from_cache.max(0);
        let input = self.input?.saturating_add(self.written_to_cache.max(0)).saturating_add(cached_input);
        Some(Usage { cached_input, ..Usage::of(input, self.output?) })
    }
}

impl http::Assembly for AnthropicAssembly {
    fn absorb(&mut self, event: &Value, listener: &Listener) -> Result<(), String> {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.begin(&event["message"]),
            "content_block_start" => {
                let block = Block::of(&event["content_block"]);
                listener.hear(&block.text);
                *self.block(event)? = block;
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let piece = |name: &str| delta[name].as_str().unwrap_or_default();
                let block = self.block(event)?;
                match delta["type"].as_str() {
                    Some("text_delta") => {
                        block.text.push_str(piece("text"));
                        listener.hear(piece("text"));
                    }
                    Some("input_json_delta") => block.arguments.push_str(piece("partial_json")),
                    _ => {}
                }
            }
            "message_delta" => {
                self.counts.take_in(&event["usage"]);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
            }
            "message_stop" => self.over = true,
            // `ping`, the end of a block, and events that this version does not know.
            _ => {}
        }
        Ok(())
    }

    fn absorb_whole(&mut self, message: &Value) -> Result<(), String> {
        let content = message["content"].as_array().ok_or("the answer holds no content")?;
        if content.len() > MOST_BLOCKS {
            return Err(too_many());
        }
        self.begin(message);
        self.blocks = (0..).zip(content.iter().map(Block::of)).collect();
        self.stop_reason = message["stop_reason"].as_str().map(ToOwned::to_owned);
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.stop_reason.is_some()
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn held(&self) -> usize {
        self.blocks.values().map(Block::held).sum()
    }
}

fn too_many() -> String {
    format!("the answer has more than {MOST_BLOCKS} blocks")
}

impl AnthropicAssembly {
    fn begin(&mut self, message: &Value) {
        self.begun = true;
        self.counts.take_in(&message["usage"]);
        self.origin.take_in(message);
    }

    fn block(&mut self, event: &Value) -> Result<&mut Block, String> {
        let index = event["index"].as_u64().unwrap_or(0);
        if self.blocks.len() >= MOST_BLOCKS && !self.blocks.contains_key(&index) {
            return Err(too_many());
        }
        Ok(self.blocks.entry(index).or_default())
    }

    /// Returns the answer; `asked_model` is its model if the provider names none.
    pub(super) fn finish(
        self,
        demand: Demand,
        names: &WireNames,
        asked_model: &str,
    ) -> Result<ModelAnswer, String> {
        if !self.begun {
            return Err("the answer holds no message".to_owned());
        }
        let (mut content, mut answer, mut tool_calls) = (String::new(), None, Vec::new());
        for block in self.blocks.into_values() {
            content.push_str(&block.text);
            if !block.is_call {
                continue;
            }
            if block.name.is_empty() {
                return Err("the answer asks for a tool without naming it".to_owned());
            }
            let (name, arguments) = (names.own(&block.name), arguments(block.arguments));
            if demand.is_answer(&name) {
                answer = answer.or(Some(demand.text(arguments)));
            } else {
                tool_calls.push(AskedCall { name, arguments });
            }
        }
        // An answer beside tool calls came too early: the calls run first.
        if let Some(answer) = answer.filter(|_| tool_calls.is_empty()) {
            content = answer;
        }
        let finish_reason = match self.stop_reason.as_deref() {
            Some("refusal") => FinishReason::ContentFilter,
            Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
            _ if !tool_calls.is_empty() => FinishReason::ToolUse,
            _ => FinishReason::Stop,
        };
        Ok(ModelAnswer {
            content: (!content.is_empty()).then_some(content),
            tool_calls,
            finish_reason,
            usage: self.counts.usage(),
            model: self.origin.model.unwrap_or_else(|| asked_model.to_owned()),
            response_id: self.origin.response_id,
        })
    }
}
