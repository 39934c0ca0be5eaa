//! `/ojs/v1/schemas`: the registry as its specification defines it (OJS schema registry §10), over the same schemas as
//! `/ojs/v1/admin/schemas`.

use super::{ArgsSchema, NewArgsSchema, missing, named};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Segment, Segments};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use turnstone_domain::RawJson;
use turnstone_domain::schema::RegisteredSchema;
use turnstone_ojs::{OjsError, request, schema_version_of};
use utoipa::ToSchema;

/// A schema to be registered.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"job_type": "email.send", "version": "2.0.0", "schema": {"type": "array", "minItems": 1}}))]
pub(super) struct PostedSchema {
    /// The job type; `type` means the same.
    #[schema(value_type = String)]
    job_type: Option<String>,
    #[schema(ignore)]
    r#type: Option<String>,
    /// A whole number, also as `2.0` or `2.0.0`.
    #[schema(value_type = Value)]
    version: Option<RawJson>,
    /// JSON Schema 2020-12, draft 7, or the draft of `$schema`.
    #[schema(value_type = Map<String, Value>)]
    schema: Option<RawJson>,
    #[schema(ignore)]
    args_schema: Option<RawJson>,
    /// off (the default), warn, or enforce, which is also called strict.
    mode: Option<String>,
}

/// A schema, wrapped.
#[derive(Serialize, ToSchema)]
pub(super) struct WrappedSchema {
    #[schema(value_type = ArgsSchema)]
    schema: TypedSchema,
    job_type: String,
    #[serde(rename = "type")]
    same_type: String,
    version: i64,
}

/// A schema that names its job type in both ways.
#[derive(Serialize)]
struct TypedSchema {
    #[serde(flatten)]
    schema: ArgsSchema,
    job_type: String,
}

/// Versions, the newest first.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedVersions {
    job_type: String,
    versions: Vec<ListedVersion>,
}

/// A version without its schema.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedVersion {
    version: i64,
    mode: &'static str,
    created_at: String,
    is_latest: bool,
}

/// Registers a version of the schema of a job type's arguments.
#[utoipa::path(
    post, path = "/ojs/v1/schemas", operation_id = "register_schema", tag = "schemas",
    security(("fleet" = ["operator"])),
    request_body = PostedSchema,
    responses(
        (status = 201, description = "It is registered.", body = WrappedSchema),
        (status = 409, description = "This version is registered already.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn register(State(app): State<Shared>, JsonBytes(bytes): JsonBytes) -> Answer {
    let PostedSchema { job_type, r#type, version, schema, args_schema, mode } = request::read(&bytes)?;
    let missing = |name: &str| OjsError::invalid_request(name, "is missing");
    let job_type = job_type.or(r#type).ok_or_else(|| missing("type"))?;
    let version = version.ok_or_else(|| missing("version"))?;
    let version = schema_version_of(&version).filter(|version| *version <= 1_000_000_000);
    let version = version.ok_or_else(|| {
        OjsError::invalid_request("version", "must be a whole number from 1, also written as 2.0 or 2.0.0")
    })?;
    let sent = NewArgsSchema { schema, args_schema, mode };
    let schema = super::register::take(&app, sent, job_type, version).await?;
    Ok(reply::json(StatusCode::CREATED, &WrappedSchema::from(&schema)))
}

/// The latest version of the schema of a job type.
#[utoipa::path(
    get, path = "/ojs/v1/schemas/{type}", operation_id = "latest_schema", tag = "schemas",
    security(("tenant" = ["viewer"])),
    params(("type" = String, Path, description = "The job type.")),
    responses((status = 200, description = "The schema.", body = WrappedSchema)),
)]
pub(crate) async fn latest(State(app): State<Shared>, Segment(job_type): Segment) -> Answer {
    let schema = found(&app, &job_type, None).await?.into_iter().next();
    let schema = schema.ok_or_else(|| missing(&job_type, None))?;
    Ok(reply::ok(&WrappedSchema::from(&schema)))
}

/// The versions of the schema of a job type, the newest first.
#[utoipa::path(
    get, path = "/ojs/v1/schemas/{type}/versions", operation_id = "list_schema_versions", tag = "schemas",
    security(("tenant" = ["viewer"])),
    params(("type" = String, Path, description = "The job type.")),
    responses((status = 200, description = "The versions.", body = ListedVersions)),
)]
pub(crate) async fn versions(State(app): State<Shared>, Segment(job_type): Segment) -> Answer {
    let schemas = found(&app, &job_type, None).await?;
    let listed = schemas.iter().enumerate().map(|(at, schema)| ListedVersion {
        version: schema.version,
        mode: schema.mode.as_str(),
        created_at: schema.created_at.to_rfc3339(),
        is_latest: at == 0,
    });
    Ok(reply::ok(&ListedVersions { versions: listed.collect(), job_type }))
}

/// One version of the schema of a job type.
#[utoipa::path(
    get, path = "/ojs/v1/schemas/{type}/{version}", operation_id = "show_schema", tag = "schemas",
    security(("tenant" = ["viewer"])),
    params(
        ("type" = String, Path, description = "The job type."),
        ("version" = String, Path, description = "A whole number, also written as 2.0 or 2.0.0."),
    ),
    responses((status = 200, description = "The schema.", body = WrappedSchema)),
)]
pub(crate) async fn version(State(app): State<Shared>, segments: Segments) -> Answer {
    let (job_type, version) = named(segments)?;
    let schema = found(&app, &job_type, Some(version)).await?.into_iter().next();
    let schema = schema.ok_or_else(|| missing(&job_type, Some(version)))?;
    Ok(reply::ok(&WrappedSchema::from(&schema)))
}

/// Removes a version of the schema of a job type.
#[utoipa::path(
    delete, path = "/ojs/v1/schemas/{type}/{version}", operation_id = "delete_schema", tag = "schemas",
    security(("fleet" = ["operator"])),
    params(
        ("type" = String, Path, description = "The job type."),
        ("version" = String, Path, description = "A whole number, also written as 2.0 or 2.0.0."),
    ),
    responses((status = 200, description = "The schema as it was.", body = ArgsSchema)),
)]
pub(crate) async fn remove(app: State<Shared>, segments: Segments) -> Answer {
    super::remove::remove(app, segments).await
}

/// Returns the registered schemas of a job type, or 404.
async fn found(app: &App, job_type: &str, version: Option<i64>) -> Result<Vec<RegisteredSchema>, Failure> {
    let schemas = app.api.store.schemas.schemas(Some(job_type), version).await?;
    if schemas.is_empty() { Err(missing(job_type, version)) } else { Ok(schemas) }
}

impl From<&RegisteredSchema> for WrappedSchema {
    fn from(schema: &RegisteredSchema) -> Self {
        let job_type = schema.job_type.clone();
        Self {
            schema: TypedSchema { schema: schema.into(), job_type: job_type.clone() },
            same_type: job_type.clone(),
            job_type,
            version: schema.version,
        }
    }
}
