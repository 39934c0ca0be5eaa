//! `PATCH /ojs/v1/admin/schemas/{type}` and `/{version}` with `{"mode"}`: the treatment of jobs that do not match.

use super::register::mode;
use super::{ArgsSchema, ArgsSchemaVersions, SchemaMode, missing, named};
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Segment, Segments};
use axum::extract::State;
use turnstone_domain::schema::RegisteredSchema;
use turnstone_ojs::request;

/// Sets the mode of all versions of the schema of a job type.
#[utoipa::path(
    patch, path = "/ojs/v1/admin/schemas/{type}", tag = "schemas",
    security(("fleet" = ["operator"])),
    params(("type" = String, Path, description = "The job type.")),
    request_body = SchemaMode,
    responses((status = 200, description = "The versions as they are now.", body = ArgsSchemaVersions)),
)]
pub(crate) async fn of_all(
    State(app): State<Shared>,
    Segment(job_type): Segment,
    JsonBytes(bytes): JsonBytes,
) -> Answer {
    let schemas = change(&app, &job_type, None, &bytes).await?;
    Ok(reply::ok(&ArgsSchemaVersions::of(job_type, &schemas)))
}

/// Sets the mode of one version of the schema of a job type.
#[utoipa::path(
    patch, path = "/ojs/v1/admin/schemas/{type}/{version}", tag = "schemas",
    security(("fleet" = ["operator"])),
    params(
        ("type" = String, Path, description = "The job type."),
        ("version" = i64, Path, description = "From 1.", minimum = 1, maximum = 1_000_000_000),
    ),
    request_body = SchemaMode,
    responses((status = 200, description = "The schema as it is now.", body = ArgsSchema)),
)]
pub(crate) async fn of_one(
    State(app): State<Shared>,
    segments: Segments,
    JsonBytes(bytes): JsonBytes,
) -> Answer {
    let (job_type, version) = named(segments)?;
    let schemas = change(&app, &job_type, Some(version), &bytes).await?;
    let schema = schemas.first().ok_or_else(|| missing(&job_type, Some(version)))?;
    Ok(reply::ok(&ArgsSchema::from(schema)))
}

async fn change(
    app: &App,
    job_type: &str,
    version: Option<i64>,
    bytes: &[u8],
) -> Result<Vec<RegisteredSchema>, Failure> {
    let SchemaMode { mode: word } = request::read(bytes)?;
    let mode = mode(&word)?;
    let changed = app.api.store.schemas.set_mode(job_type, version, mode).await?;
    app.schemas.forget(job_type);
    if changed == 0 {
        return Err(missing(job_type, version));
    }
    Ok(app.api.store.schemas.schemas(Some(job_type), version).await?)
}
