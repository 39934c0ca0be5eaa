//! `GET /ojs/v1/admin/schemas`.

use super::{ArgsSchema, ArgsSchemas};
use crate::api::Shared;
use crate::reply::{self, Answer};
use axum::extract::State;

/// Lists all schemas by job type, the newest version first.
#[utoipa::path(
    get, path = "/ojs/v1/admin/schemas", tag = "schemas",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "The schemas.", body = ArgsSchemas)),
)]
pub(crate) async fn list_schemas(State(app): State<Shared>) -> Answer {
    let schemas = app.api.store.schemas.schemas(None, None).await?;
    let items: Vec<ArgsSchema> = schemas.iter().map(ArgsSchema::from).collect();
    Ok(reply::ok(&ArgsSchemas { schemas: items.clone(), count: items.len(), items }))
}
