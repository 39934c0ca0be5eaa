//! `GET /ojs/v1/admin/schemas/{type}/versions`.

use super::{ArgsSchemaVersions, missing};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Segment;
use axum::extract::State;

/// The versions of the schema of a job type, the newest first.
#[utoipa::path(
    get, path = "/ojs/v1/admin/schemas/{type}/versions", operation_id = "admin_list_schema_versions", tag = "schemas",
    security(("tenant" = ["viewer"])),
    params(("type" = String, Path, description = "The job type.")),
    responses((status = 200, description = "The versions.", body = ArgsSchemaVersions)),
)]
pub(crate) async fn versions(State(app): State<Shared>, Segment(job_type): Segment) -> Answer {
    let schemas = app.api.store.schemas.schemas(Some(&job_type), None).await?;
    if schemas.is_empty() {
        return Err(missing(&job_type, None));
    }
    Ok(reply::ok(&ArgsSchemaVersions::of(job_type, &schemas)))
}
