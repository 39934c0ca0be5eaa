//! `GET /agents/{name}`: the document as it was written (OpenAgentSpec).

use super::input::check_accepted;
use crate::api::Shared;
use crate::reply::Answer;
use crate::request::Segment;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use turnstone_ojs::OjsError;

/// The document of an agent, as it was written.
#[utoipa::path(
    get, path = "/agents/{name}", tag = "agents",
    params(("name" = String, Path, description = "The agent's name.")),
    responses((status = 200, description = "The document, byte for byte.", body = String, content_type = "application/yaml")),
)]
pub(crate) async fn document(
    State(app): State<Shared>,
    Segment(name): Segment,
    headers: HeaderMap,
) -> Answer {
    check_accepted(&headers, &["application/yaml", "text/yaml", "application/x-yaml"])?;
    match app.api.store.views.agent(&name).await? {
        Some(record) => Ok(([(CONTENT_TYPE, "application/yaml")], record.source).into_response()),
        None => Err(OjsError::not_found("agent", &name).into()),
    }
}
