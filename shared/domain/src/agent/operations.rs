//! What can be asked of an agent beside a text (Agent Protocol, AgentOperation).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of request with a form of its own: its input is checked before it is accepted, its answer before it counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// The `type` of such requests.
    pub name: String,
    /// For clients.
    pub description: String,
    /// JSON Schema of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}
