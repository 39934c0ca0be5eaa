//! What a guardrail was asked, what it said, and whether it let the text pass: for those who audit (OAS-41 … OAS-46).

use crate::agent::guardrails::Side;
use crate::{CallId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A guardrail's tool was asked once, in as many tries as it took.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GuardrailCheck {
    /// The id of the call, which is its idempotency key.
    pub call_id: CallId,
    /// The turn whose input or answer was checked.
    pub turn: i64,
    /// What was checked.
    pub side: Side,
    /// The guardrail's tool.
    pub tool: String,
    /// Whether the text passed.
    pub passed: bool,
    /// What was asked and answered.
    #[serde(flatten)]
    pub asked: Asked,
    /// When it was known.
    pub at: Timestamp,
}

/// What a guardrail's tool was asked and answered.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Asked {
    /// The arguments of the call, with the text that was checked.
    pub input: Value,
    /// What the tool answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why there is no answer, in the tool's own words where it had some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why the assertion does not hold for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
}

impl GuardrailCheck {
    /// The text that was checked.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.asked.input.as_object()?.values().next()?.as_str()
    }
}
