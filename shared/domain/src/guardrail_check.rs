//! Checks of guardrails for the audit: the question, the answer and the verdict (OAS-41 … OAS-46).

use crate::agent::guardrails::Side;
use crate::{CallId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One check by a guardrail's tool, whatever number of tries it took.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GuardrailCheck {
    /// The id of the call, which is its idempotency key.
    pub call_id: CallId,
    /// The turn whose input or answer was checked.
    pub turn: i64,
    /// The direction of the text.
    pub side: Side,
    /// The guardrail's tool.
    pub tool: String,
    /// True if the text passed.
    pub passed: bool,
    /// The question and the answer.
    #[serde(flatten)]
    pub asked: GuardrailCall,
    /// The time of the verdict.
    pub at: Timestamp,
}

/// The question to a guardrail's tool, and its answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GuardrailCall {
    /// The arguments of the call, with the text that was checked.
    pub input: Value,
    /// The tool's answer.
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
    /// Returns the text that was checked.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.asked.input.as_object()?.values().next()?.as_str()
    }
}
