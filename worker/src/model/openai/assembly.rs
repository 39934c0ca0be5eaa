//! Builds an answer from the pieces of a stream, or from one whole message.

use crate::model::http::{self, Origin, WireNames, arguments, usage};
use crate::model::{AskedCall, FinishReason, Listener, ModelAnswer, Usage};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most tool calls of one answer; an answer with more is refused as malformed.
const MOST_CALLS: usize = 128;

/// The part of an answer that has arrived.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CompletionsAssembly {
    content: String,
    refusal: String,
    calls: Vec<Piece>,
    /// Maps the provider's index of a call to its place in `calls`.
    by_index: BTreeMap<u64, usize>,
    finish: Option<String>,
    usage: Option<Usage>,
    origin: Origin,
    any_choice: bool,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Piece {
    id: String,
    name: String,
    arguments: String,
}

impl http::Assembly for CompletionsAssembly {
    fn absorb(&mut self, chunk: &Value, listener: &Listener) -> Result<(), String> {
        let before = self.content.len();
        self.take_in(chunk)?;
        listener.hear(self.content.get(before..).unwrap_or_default());
        Ok(())
    }

    fn absorb_whole(&mut self, document: &Value) -> Result<(), String> {
        self.take_in(document)
    }

    /// Only the usage may still follow.
    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The stream itself ends with `[DONE]`.
    fn is_over(&self) -> bool {
        false
    }

    fn held(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
        self.content.len() + self.refusal.len() + calls.sum::<usize>()
    }
}

impl CompletionsAssembly {
    /// Takes one chunk of a stream, or a whole answer, which differs in one word only.
    fn take_in(&mut self, chunk: &Value) -> Result<(), String> {
        self.origin.take_in(chunk);
        if let Some(usage) = usage(&chunk["usage"], "prompt", "completion") {
            self.usage = Some(usage);
        }
        let choices = chunk["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(choice) = choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0) else {
            return Ok(());
        };
        self.any_choice = true;
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        let said = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        add_text(&mut self.content, &said["content"]);
        add_text(&mut self.refusal, &said["refusal"]);
        for call in said["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default() {
            self.absorb_call(call)?;
        }
        Ok(())
    }

    fn absorb_call(&mut self, call: &Value) -> Result<(), String> {
        let function = &call["function"];
        let id = call["id"].as_str().unwrap_or_default();
        let name = function["name"].as_str().unwrap_or_default();
        let at = self.place(call["index"].as_u64(), id, name)?;
        let Some(piece) = self.calls.get_mut(at) else { return Ok(()) };
        if piece.id.is_empty() {
            id.clone_into(&mut piece.id);
        }
        // Some servers repeat the name in every piece, so the first one is kept.
        if piece.name.is_empty() {
            name.clone_into(&mut piece.name);
        }
        match &function["arguments"] {
            Value::String(text) => piece.arguments.push_str(text),
            Value::Null => {}
            whole => piece.arguments = whole.to_string(),
        }
        Ok(())
    }

    /// Returns the place of a piece in `calls`. Some servers omit the index, and others send 0 for every
    /// call. Then a new id, or a name without an index, begins a new call.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> Result<usize, String> {
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if id.is_empty() && name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let same =
            |at: &usize| self.calls.get(*at).is_some_and(|p| id.is_empty() || p.id.is_empty() || p.id == id);
        if let Some(at) = known.filter(same) {
            return Ok(at);
        }
        if self.calls.len() == MOST_CALLS {
            return Err(format!("the answer asks for more than {MOST_CALLS} tool calls"));
        }
        self.calls.push(Piece::default());
        let at = self.calls.len() - 1;
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        Ok(at)
    }

    /// Returns the answer; `asked_model` is its model if the provider names none.
    pub(super) fn finish(self, names: &WireNames, asked_model: &str) -> Result<ModelAnswer, String> {
        if !self.any_choice {
            return Err("the answer holds no choice".to_owned());
        }
        if self.calls.iter().any(|call| call.name.is_empty()) {
            return Err("the answer asks for a tool without naming it".to_owned());
        }
        let refused = self.content.is_empty() && self.calls.is_empty() && !self.refusal.is_empty();
        let finish_reason = match self.finish.as_deref() {
            Some("content_filter") => FinishReason::ContentFilter,
            _ if refused => FinishReason::ContentFilter,
            Some("length") => FinishReason::Length,
            // Several servers send `stop` after tool calls.
            _ if !self.calls.is_empty() => FinishReason::ToolUse,
            _ => FinishReason::Stop,
        };
        let content = if refused { self.refusal } else { self.content };
        let tool_calls = self
            .calls
            .into_iter()
            .map(|call| AskedCall { name: names.own(&call.name), arguments: arguments(call.arguments) });
        Ok(ModelAnswer {
            content: (!content.is_empty()).then_some(content),
            tool_calls: tool_calls.collect(),
            finish_reason,
            usage: self.usage,
            model: self.origin.model.unwrap_or_else(|| asked_model.to_owned()),
            response_id: self.origin.response_id,
        })
    }
}

/// Appends text, or a list of parts that hold text.
fn add_text(into: &mut String, said: &Value) {
    match said {
        Value::String(text) => into.push_str(text),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).for_each(|text| into.push_str(text))
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(chunks: &[Value]) -> Result<ModelAnswer, String> {
        let mut assembly = CompletionsAssembly::default();
        for chunk in chunks {
            assembly.take_in(chunk)?;
        }
        assembly.finish(&WireNames::default(), "asked")
    }

    fn delta(calls: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
    }

    fn calls(answer: &ModelAnswer) -> Vec<(&str, String)> {
        answer.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.to_string())).collect()
    }

    #[test]
    fn interleaved_calls_are_assembled_by_index() {
        let answer = answer(&[
            delta(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\""}}])),
            delta(json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}])),
            delta(json!([{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"name": "g", "arguments": "oops"}}])),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        ])
        .unwrap();
        assert_eq!(calls(&answer), [("f", "{\"x\":1}".to_owned()), ("g", "\"oops\"".to_owned())]);
        assert_eq!(
            (answer.finish_reason, answer.content, answer.model.as_str()),
            (FinishReason::ToolUse, None, "asked")
        );
    }

    #[test]
    fn servers_that_forget_the_index_or_repeat_it_are_understood() {
        let forgotten = answer(&[
            delta(json!([{"id": "a", "function": {"name": "f", "arguments": "{"}}])),
            delta(json!([{"function": {"arguments": "}"}}])),
            delta(json!([{"id": "b", "function": {"name": "f", "arguments": {"y": 2}}}])),
        ])
        .unwrap();
        assert_eq!(calls(&forgotten), [("f", "{}".to_owned()), ("f", "{\"y\":2}".to_owned())]);
        let repeated = answer(&[
            delta(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}])),
            delta(json!([{"index": 0, "id": "b", "function": {"name": "g"}}])),
            delta(json!([{"index": 0, "function": {"arguments": "[1]"}}])),
        ])
        .unwrap();
        assert_eq!(calls(&repeated), [("f", "{}".to_owned()), ("g", "[1]".to_owned())]);
    }

    #[test]
    fn odd_usage_is_passed_on_and_nonsense_is_none() {
        let of = |usage: Value| {
            answer(&[json!({"choices": [{"message": {"content": "x"}}], "usage": usage})]).unwrap().usage
        };
        assert_eq!(of(json!({"prompt_tokens": 3, "completion_tokens": -4})), Some(Usage::of(3, -4)));
        assert_eq!(
            of(json!({"prompt_tokens": 1.2, "completion_tokens": 1e300})),
            Some(Usage::of(2, i64::MAX))
        );
        assert_eq!(
            of(json!({"prompt_tokens": u64::MAX, "completion_tokens": 0})),
            Some(Usage::of(i64::MAX, 0))
        );
        let reported = json!({"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8},
                          "completion_tokens_details": {"reasoning_tokens": 4}});
        assert_eq!(of(reported), Some(Usage { input: 9, cached_input: 8, output: 5, reasoning: 4 }));
        assert_eq!(of(json!({"prompt_tokens": "3", "completion_tokens": 4})), None);
        assert_eq!(of(Value::Null), None);
    }

    #[test]
    fn refusals_and_truncations_are_distinguished() {
        let of = |message: Value, reason: &str| {
            answer(&[json!({"choices": [{"message": message, "finish_reason": reason}]})]).unwrap()
        };
        let refused = of(json!({"content": null, "refusal": "I will not"}), "stop");
        assert_eq!(
            (refused.finish_reason, refused.content.as_deref()),
            (FinishReason::ContentFilter, Some("I will not"))
        );
        assert_eq!(of(json!({"content": "ab"}), "length").finish_reason, FinishReason::Length);
        assert_eq!(
            of(json!({"content": [{"type": "text", "text": "ab"}]}), "stop").content.as_deref(),
            Some("ab")
        );
        assert_eq!(of(json!({"content": "ab"}), "novel_reason").finish_reason, FinishReason::Stop);
    }

    #[test]
    fn an_answer_without_substance_is_an_error() {
        assert!(answer(&[json!({"object": "list"})]).unwrap_err().contains("no choice"));
        assert!(
            answer(&[delta(json!([{"index": 0, "function": {"arguments": "{}"}}]))])
                .unwrap_err()
                .contains("naming")
        );
        let many: Vec<Value> =
            (0..200).map(|index| json!({"index": index, "function": {"name": "f"}})).collect();
        assert!(answer(&[delta(Value::Array(many))]).unwrap_err().contains("128"));
    }
}
