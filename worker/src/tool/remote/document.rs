//! The common part of the remote agents that a document of Agent Spec names.

use crate::tool::ToolError;
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_specs::agent_spec::model::Head;

/// Returns the tool for an agent. Its arguments are the worker's own: message, context and task. Its server may begin
/// another task for the same message.
pub(super) fn spec(head: &Head) -> ToolSpec {
    ToolSpec {
        name: head.name.clone(),
        description: head.description.clone().unwrap_or_default(),
        input_schema: json!({"type": "object"}),
        idempotent: false,
    }
}

/// Returns the answer to a message, if it comes within this time.
///
/// # Errors
/// [`ToolError::Timeout`] when it does not; the error of the message.
pub(super) async fn within(
    timeout: Duration,
    spec: &ToolSpec,
    asked: impl Future<Output = Result<Value, ToolError>>,
) -> Result<Value, ToolError> {
    tokio::time::timeout(timeout, asked).await.unwrap_or_else(|_| {
        let ms = timeout.as_millis();
        Err(ToolError::Timeout(format!("agent {}: it has not answered within {ms} ms", spec.name)))
    })
}
