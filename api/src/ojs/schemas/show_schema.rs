//! `GET /ojs/v1/admin/schemas/{type}`, the latest version, and `GET /ojs/v1/admin/schemas/{type}/{version}`.

use super::{ArgsSchema, missing, named};
use crate::api::{App, Shared};
use crate::reply::{self, Answer};
use crate::request::{Segment, Segments};
use axum::extract::State;

/// The latest version of the schema of a job type.
#[utoipa::path(
    get, path = "/ojs/v1/admin/schemas/{type}", operation_id = "admin_latest_schema", tag = "schemas",
    security(("tenant" = ["viewer"])),
    params(("type" = String, Path, description = "The job type.")),
    responses((status = 200, description = "The schema.", body = ArgsSchema)),
)]
pub(crate) async fn latest(State(app): State<Shared>, Segment(job_type): Segment) -> Answer {
    show(&app, &job_type, None).await
}

/// One version of the schema of a job type.
#[utoipa::path(
    get, path = "/ojs/v1/admin/schemas/{type}/{version}", operation_id = "admin_show_schema", tag = "schemas",
    security(("tenant" = ["viewer"])),
    params(
        ("type" = String, Path, description = "The job type."),
        ("version" = i64, Path, description = "From 1.", minimum = 1, maximum = 1_000_000_000),
    ),
    responses((status = 200, description = "The schema.", body = ArgsSchema)),
)]
pub(crate) async fn version(State(app): State<Shared>, segments: Segments) -> Answer {
    let (job_type, version) = named(segments)?;
    show(&app, &job_type, Some(version)).await
}

async fn show(app: &App, job_type: &str, version: Option<i64>) -> Answer {
    let schemas = app.api.store.schemas.schemas(Some(job_type), version).await?;
    match schemas.first() {
        Some(schema) => Ok(reply::ok(&ArgsSchema::from(schema))),
        None => Err(missing(job_type, version)),
    }
}
