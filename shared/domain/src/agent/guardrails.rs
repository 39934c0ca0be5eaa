//! Guardrails: a tool checks the user's input before a model receives it, and the model's answer before the user does
//! (OAS-37 … OAS-46).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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

    /// Returns the arguments of the guardrail's tool: under the name of its one required text when it has exactly one,
    /// else under `input` or `output` (agents brief §1.7).
    #[must_use]
    pub fn arguments(self, schema: &Value, text: &str) -> Value {
        let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_text = |name: &&str| schema["properties"][*name]["type"] == "string";
        let mut texts = required.iter().filter_map(Value::as_str).filter(is_text);
        match (texts.next(), texts.next()) {
            (Some(only), None) => json!({only: text}),
            _ => json!({self.as_str(): text}),
        }
    }
}

impl Guardrails {
    /// Returns true if a model's output may only be shown after it has passed a guardrail (OAS-43).
    #[must_use]
    pub fn hold_back(&self) -> bool {
        self.output.is_some() || self.for_guarded
    }

    /// Returns true if there is no guardrail.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.input.is_none() && self.output.is_none() && !self.for_guarded
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
        assert_eq!(Side::Input.arguments(&one, "hi"), json!({"text": "hi"}));
        let two =
            json!({"required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        assert_eq!(Side::Input.arguments(&two, "hi"), json!({"input": "hi"}));
        assert_eq!(Side::Output.arguments(&json!({"type": "object"}), "hi"), json!({"output": "hi"}));
    }
}
