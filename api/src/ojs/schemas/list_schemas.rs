//! `GET /ojs/v1/admin/schemas`.

use super::{ArgsSchemas, list};
use crate::api::Shared;
use crate::reply::{self, Answer};
use axum::extract::State;
use axum::http::StatusCode;
use turnstone_domain::RawObject;

/// Lists all schemas by job type, the newest version first.
#[utoipa::path(
    get, path = "/ojs/v1/admin/schemas", tag = "schemas",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "The schemas.", body = ArgsSchemas)),
)]
pub(crate) async fn list_schemas(State(app): State<Shared>) -> Answer {
    let schemas = app.api.store.schemas.schemas(None, None).await?;
    let shown = list(&schemas)?;
    let mut out = RawObject::new();
    out.insert("schemas", shown.clone());
    out.insert("items", shown);
    out.insert("count", schemas.len());
    Ok(reply::json(StatusCode::OK, &out))
}
