//! Operations that an agent offers beside free text (Agent Protocol, AgentOperation).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind of request with schemas. Its input is checked before the request is accepted, its answer before the job
/// completes.
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
