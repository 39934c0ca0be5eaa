//! `GET /agents/{name}/describe`: the purpose and the operations of an agent.

use super::find;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The endpoints of every agent, below its path.
const ENDPOINTS: [&str; 6] =
    ["/describe", "/process", "/getevents", "/stream_request", "/request/{request_id}", "/runs"];

/// The purpose and the operations of an agent.
#[derive(Serialize, ToSchema)]
struct AgentDescriptor {
    name: String,
    purpose: String,
    endpoints: Vec<&'static str>,
    operations: Vec<AgentOperation>,
    /// For information: the names of its capabilities.
    tools: Vec<String>,
}

/// An operation of an agent.
#[derive(Serialize, ToSchema)]
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
pub(crate) async fn describe(State(app): State<Shared>, Segment(name): Segment, tenant: Tenant) -> Answer {
    let agent = find::agent(&app, &name, &tenant).await?.definition;
    let own = agent.operations.into_iter().map(|operation| AgentOperation {
        name: operation.name,
        description: operation.description,
        input_schema: operation.input_schema,
        output_schema: operation.output_schema,
    });
    Ok(reply::ok(&AgentDescriptor {
        name: agent.name,
        purpose: agent.description,
        endpoints: ENDPOINTS.to_vec(),
        operations: std::iter::once(chat()).chain(own).collect(),
        tools: agent.capabilities.into_iter().map(|capability| capability.name).collect(),
    }))
}

/// Returns the operation that every agent has.
fn chat() -> AgentOperation {
    let text =
        |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "string"}}});
    AgentOperation {
        name: "chat".to_owned(),
        description: "Send a chat request: one text of the user, answered by one text.".to_owned(),
        input_schema: Some(text("input")),
        output_schema: Some(text("output")),
    }
}
