//! `GET /agents/{name}/describe`: the purpose and the operations of an agent.

use super::find;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Segment;
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_domain::AgentDefinition;
use utoipa::ToSchema;

/// The endpoints of every agent, below its path.
const ENDPOINTS: [&str; 6] =
    ["/describe", "/process", "/getevents", "/stream_request", "/request/{request_id}", "/runs"];

/// The purpose and the operations of an agent.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct AgentDescriptor {
    name: String,
    purpose: String,
    endpoints: Vec<String>,
    operations: Vec<AgentOperation>,
    /// For information: the names of its capabilities.
    tools: Vec<String>,
}

/// An operation of an agent.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct AgentOperation {
    name: String,
    description: String,
    /// JSON Schema.
    input_schema: Option<Value>,
    /// JSON Schema.
    output_schema: Option<Value>,
}

/// An agent's descriptor (Agent Protocol, describe).
#[utoipa::path(
    get, path = "/agents/{name}/describe", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    params(("name" = String, Path, description = "The agent's name.")),
    responses((status = 200, description = "The descriptor.", body = AgentDescriptor)),
)]
pub(crate) async fn describe(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    let agent = find::agent(&app, &name).await?;
    Ok(reply::ok(&descriptor(&agent.definition)))
}

fn descriptor(agent: &AgentDefinition) -> Value {
    let tools: Vec<&str> = agent.capabilities.iter().map(|capability| capability.name.as_str()).collect();
    let own = agent.operations.iter().map(|operation| {
        json!({"name": operation.name, "description": operation.description,
               "input_schema": operation.input_schema, "output_schema": operation.output_schema})
    });
    let operations: Vec<Value> = std::iter::once(chat()).chain(own).collect();
    json!({
        "name": agent.name,
        "purpose": agent.description,
        "endpoints": ENDPOINTS,
        "operations": operations,
        "tools": tools,
    })
}

/// Returns the operation that every agent has.
fn chat() -> Value {
    let text_in =
        |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "string"}}});
    json!({
        "name": "chat",
        "description": "Send a chat request: one text of the user, answered by one text.",
        "input_schema": text_in("input"),
        "output_schema": text_in("output"),
    })
}
