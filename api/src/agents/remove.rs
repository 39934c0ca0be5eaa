//! `DELETE /agents/{name}`: removes an agent from the registry.

use super::register::unresolved;
use crate::api::Shared;
use crate::audit::Operator;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment};
use axum::extract::State;
use serde::Serialize;
use serde_json::json;
use turnstone_ojs::OjsError;
use turnstone_store::{AgentRemoval, AgentRemoved};
use utoipa::ToSchema;

/// An agent that was removed.
#[derive(Serialize, ToSchema)]
struct RemovedAgent {
    name: String,
    deleted: bool,
}

/// Removes an agent. Engagements that run keep the definition they began with; no new one begins.
#[utoipa::path(
    delete, path = "/agents/{name}", operation_id = "delete_agent", tag = "agents",
    security(("fleet" = ["operator"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("allow_unresolved" = Option<bool>, Query, description = "Remove it although other agents name it; their calls of it fail until it is there again."),
    ),
    responses(
        (status = 200, description = "It is removed.", body = RemovedAgent),
        (status = 409, description = "Other agents name it as a capability or as a reviewer.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn remove(
    State(app): State<Shared>,
    Segment(name): Segment,
    params: Params,
    operator: Operator,
) -> Answer {
    let removal =
        AgentRemoval { name: name.clone(), even_if_named: unresolved(&params)?, at: app.api.clock.now() };
    match app.api.store.intake.remove_agent(removal).await? {
        AgentRemoved::Gone => {
            operator.did("agent.remove", &name, "removed");
            Ok(reply::ok(&RemovedAgent { name, deleted: true }))
        }
        AgentRemoved::Unknown => Err(OjsError::not_found("agent", &name).into()),
        AgentRemoved::NamedBy(others) => {
            let message = format!("Agent `{name}` is named by {}.", others.join(", "));
            let hint = "Remove or change those first, or add ?allow_unresolved=1: their calls of it fail from then on.";
            Err(OjsError::new(409, "conflict", message, hint).with("named_by", json!(others)).into())
        }
    }
}
