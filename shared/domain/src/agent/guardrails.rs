//! Guardrails: a tool checks the user's input before a model receives it, and the model's answer before the user does
//! (OAS-37 … OAS-46).

use crate::digest;
use crate::message::ContentPart;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The guardrails of an agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Guardrails {
    /// For everything that users send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Guardrail>,
    /// For every answer to users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Guardrail>,
    /// True if it is a delegate of an agent whose answer has to pass a guardrail (OAS-43). Its input and its own output
    /// are then not shown outside. Set when the delegate is started, never by a document.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_guarded: bool,
    /// True if it is a delegate whose answer its caller may refuse, hold for a reviewer or filter (OAS-35, RS-08). Then its
    /// words are shown by its caller alone. It may ask its user nevertheless. Set as `for_guarded` is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_restricted: bool,
}

/// A tool, and what must hold for its output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Guardrail {
    /// The tool; it need not be among the capabilities (OAS-39).
    pub tool_name: String,
    /// CEL over the tool's output and nothing else (OAS-40, OAS-45).
    pub assertion: String,
}

/// The direction of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// From the user to the model.
    Input,
    /// From the model to the user.
    Output,
}

impl Side {
    /// Returns the word in the document.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }

    /// Reads [`Side::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Input, Self::Output].into_iter().find(|side| side.as_str() == word)
    }

    /// Returns the arguments of the guardrail's tool: the text under the name of its one required text when it has exactly
    /// one, else under `input` or `output` (agents brief §1.7). The ordered parts of a message that is more than one text
    /// are `parts`.
    #[must_use]
    pub fn arguments(self, schema: &Value, text: &str, parts: &[ContentPart]) -> Value {
        let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_text = |name: &&str| schema["properties"][*name]["type"] == "string";
        let mut texts = required.iter().filter_map(Value::as_str).filter(is_text);
        let mut arguments = match (texts.next(), texts.next()) {
            (Some(only), None) => json!({only: text}),
            _ => json!({self.as_str(): text}),
        };
        if !parts.is_empty() && takes_parts(schema) {
            arguments[PARTS] = json!(parts);
        }
        arguments
    }
}

/// The argument of a guardrail's tool for the parts of a message.
const PARTS: &str = "parts";

/// Returns true if a guardrail's tool can see pictures: its schema allows the argument `parts`.
#[must_use]
pub fn takes_parts(schema: &Value) -> bool {
    schema["additionalProperties"] != false || schema["properties"].get(PARTS).is_some()
}

/// Replaces the bytes of pictures in the arguments of a guardrail's tool by their digests, for the audit.
#[must_use]
pub fn without_pictures(mut arguments: Value) -> Value {
    for part in arguments.get_mut(PARTS).and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(source) = part.get_mut("source").filter(|source| source["type"] == "base64") else {
            continue;
        };
        let data = source["data"].as_str().unwrap_or_default();
        source["data"] = format!("sha256:{}", digest::of_text(data)).into();
    }
    arguments
}

impl Guardrails {
    /// Returns true if a model's output may only be shown after it has passed a guardrail (OAS-43).
    #[must_use]
    pub fn hold_back(&self) -> bool {
        self.output.is_some() || self.is_shown_by_its_caller()
    }

    /// Returns true if only the caller of this delegate decides which of its words are shown outside, and its own endpoints
    /// show none.
    #[must_use]
    pub fn is_shown_by_its_caller(&self) -> bool {
        self.for_guarded || self.for_restricted
    }

    /// Returns true if there is no guardrail.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.input.is_none() && self.output.is_none() && !self.is_shown_by_its_caller()
    }

    /// Returns the guardrail of this side.
    #[must_use]
    pub fn of(&self, side: Side) -> Option<&Guardrail> {
        match side {
            Side::Input => self.input.as_ref(),
            Side::Output => self.output.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_goes_where_the_tool_wants_it() {
        let one = json!({"required": ["text", "n"], "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}});
        assert_eq!(Side::Input.arguments(&one, "hi", &[]), json!({"text": "hi"}));
        let two =
            json!({"required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        assert_eq!(Side::Input.arguments(&two, "hi", &[]), json!({"input": "hi"}));
        assert_eq!(Side::Output.arguments(&json!({"type": "object"}), "hi", &[]), json!({"output": "hi"}));
    }

    /// OAS-41: pictures and files are parts, unless the tool's schema forbids them; the audit has a digest of a picture.
    #[test]
    fn parts_go_to_tools_that_may_have_them() {
        let parts = json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]);
        let read: Vec<ContentPart> = serde_json::from_value(parts.clone()).unwrap();
        let sent = Side::Input.arguments(&json!({}), "[image, image/png]", &read);
        assert_eq!(sent, json!({"input": "[image, image/png]", "parts": parts}));
        let kept = without_pictures(sent)["parts"][0]["source"]["data"].as_str().unwrap().to_owned();
        assert_eq!(kept, format!("sha256:{}", digest::of_text("aGk=")));
        let closed = json!({"additionalProperties": false, "properties": {"input": {"type": "string"}}});
        assert_eq!(Side::Input.arguments(&closed, "hi", &read), json!({"input": "hi"}));
        assert!(
            !takes_parts(&closed)
                && takes_parts(&json!({"properties": {"parts": {}}, "additionalProperties": false}))
        );
    }
}
