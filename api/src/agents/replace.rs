//! `PUT /agents/{name}`: registers the agent of that name.

use super::bundle::BundleBody;
use super::register;
use crate::api::Shared;
use crate::docs;
use crate::reply::Answer;
use crate::request::{Params, Raw, Segment};
use axum::extract::State;

/// Registers the agent of this name, or replaces it in one step. Engagements that run keep the definition they began with.
#[utoipa::path(
    put, path = "/agents/{name}", tag = "agents",
    security(("fleet" = ["operator"])),
    params(
        ("name" = String, Path, description = "The agent's name, which the document has to say as well, unless it is an Agent Spec flow."),
        ("allow_unresolved" = Option<bool>, Query, description = "Take references to what is not there yet; calls of it fail until it is."),
        ("tenants" = Option<String>, Query, description = "The tenants that the agent serves, with commas between them; `*` for all. Left out, it serves the same as before, and a new agent serves all."),
    ),
    request_body(description = "A YAML or JSON document: an OpenAgentSpec agent, an OSSA manifest, or an Agent Spec flow; the flow alone, or with what it refers to.", content(
        (String = "application/yaml"),
        (BundleBody = "application/json"),
    )),
    responses(
        (status = 200, description = "The agent was known and is replaced, or is the same.", body = super::RegisteredAgent),
        (status = 201, description = "The agent is new.", body = super::RegisteredAgent),
        (status = 422, description = "The document is not a usable agent, or another one's; nothing is stored.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn replace(
    State(app): State<Shared>,
    Segment(name): Segment,
    params: Params,
    Raw(bytes): Raw,
) -> Answer {
    register::store(&app, bytes, &params, Some(&name)).await
}
