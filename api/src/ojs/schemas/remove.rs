//! `DELETE /ojs/v1/admin/schemas/{type}/{version}`: the version before becomes the latest.

use super::{ArgsSchema, missing, named};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Segments;
use axum::extract::State;

/// Removes a version of the schema of a job type.
#[utoipa::path(
    delete, path = "/ojs/v1/admin/schemas/{type}/{version}", operation_id = "admin_delete_schema", tag = "schemas",
    security(("fleet" = ["operator"])),
    params(
        ("type" = String, Path, description = "The job type."),
        ("version" = i64, Path, description = "From 1.", minimum = 1, maximum = 1_000_000_000),
    ),
    responses((status = 200, description = "The schema as it was.", body = ArgsSchema)),
)]
pub(crate) async fn remove(State(app): State<Shared>, segments: Segments) -> Answer {
    let (job_type, version) = named(segments)?;
    let schemas = app.api.store.schemas.schemas(Some(&job_type), Some(version)).await?;
    let removed = app.api.store.schemas.remove(&job_type, version).await?;
    app.schemas.forget(&job_type);
    match schemas.first().filter(|_| removed) {
        Some(schema) => Ok(reply::ok(&ArgsSchema::from(schema))),
        None => Err(missing(&job_type, Some(version))),
    }
}
