//! `GET /agents/{name}`: the document as it was written (OpenAgentSpec).

use super::input::check_accepted;
use crate::api::Shared;
use crate::reply::Answer;
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use turnstone_ojs::OjsError;

/// The document of an agent, as it was written. An agent that does not serve the tenant does not exist for it.
#[utoipa::path(
    get, path = "/agents/{name}", tag = "agents",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("format" = Option<String>, Query, description = "`agent-spec`: the canonical document of a flow, as JSON."),
    ),
    responses((status = 200, description = "The document, byte for byte.", body = String, content_type = "application/yaml")),
)]
pub(crate) async fn document(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let is_canonical = params.word("format", canonical, "agent-spec")?.unwrap_or(false);
    let offered = ["application/yaml", "text/yaml", "application/x-yaml", "application/json"];
    check_accepted(&headers, if is_canonical { &offered[3..] } else { &offered[..3] })?;
    match app.api.store.views.agent(&name, tenant.name()).await? {
        Some(record) if is_canonical => match record.definition.flow {
            Some(flow) => {
                Ok(([(CONTENT_TYPE, "application/json")], flow.document().to_owned()).into_response())
            }
            None => {
                let why = format!("The agent `{name}` is no flow of Agent Spec.");
                Err(OjsError::validation("format", why).into())
            }
        },
        Some(record) => Ok(([(CONTENT_TYPE, "application/yaml")], record.source).into_response()),
        None => Err(OjsError::not_found("agent", &name).into()),
    }
}

fn canonical(word: &str) -> Option<bool> {
    (word == "agent-spec").then_some(true)
}
