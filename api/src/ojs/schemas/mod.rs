//! Schemas of arguments (OJS schema registry): register, show, change the mode, remove; and the check at enqueue.

mod binding;
pub(crate) mod book;
mod change_mode;
mod list_schemas;
mod register;
mod remove;
pub(crate) mod routes;
mod show_schema;
mod versions;

use crate::reply::Failure;
use crate::request::Segments;
use serde::{Deserialize, Serialize};
use turnstone_domain::RawJson;
use turnstone_domain::schema::RegisteredSchema;
use turnstone_ojs::request::filled;
use turnstone_ojs::{OjsError, schema_version};
use utoipa::ToSchema;

/// Reads a version: a whole number, which may be written as `2.0` or `2.0.0`.
fn version(text: &str) -> Result<i64, OjsError> {
    match schema_version(text) {
        Some(version @ 1..=1_000_000_000) => Ok(version),
        _ => Err(OjsError::invalid_request(
            "version",
            "must be a whole number from 1 to 1000000000; versions between, such as 2.1, have no schema of their own",
        )),
    }
}

/// Job type and version of a path.
fn named(segments: Segments) -> Result<(String, i64), Failure> {
    let Segments(job_type, number) = segments;
    Ok((job_type, version(&number)?))
}

fn missing(job_type: &str, version: Option<i64>) -> Failure {
    let id = version.map_or_else(|| job_type.to_owned(), |version| format!("{job_type} version {version}"));
    OjsError::not_found("schema", &id).into()
}

impl From<&RegisteredSchema> for ArgsSchema {
    fn from(schema: &RegisteredSchema) -> Self {
        Self {
            job_type: schema.job_type.clone(),
            version: schema.version,
            mode: schema.mode.as_str(),
            schema: RawJson::from_text(schema.body.clone()).unwrap_or_else(|_| RawJson::null()),
            created_at: schema.created_at.to_rfc3339(),
        }
    }
}

impl ArgsSchemaVersions {
    fn of(job_type: String, schemas: &[RegisteredSchema]) -> Self {
        Self { job_type, versions: schemas.iter().map(ArgsSchema::from).collect() }
    }
}

/// A version of the schema of a job type.
#[derive(Clone, Serialize, ToSchema)]
struct ArgsSchema {
    #[serde(rename = "type")]
    #[schema(example = "email.send")]
    job_type: String,
    #[schema(example = 1)]
    version: i64,
    /// enforce, warn or off.
    mode: &'static str,
    /// The schema of `args`.
    #[schema(value_type = Value)]
    schema: RawJson,
    created_at: String,
}

/// Versions of the schema of a job type, the newest first.
#[derive(Serialize, ToSchema)]
struct ArgsSchemaVersions {
    #[serde(rename = "type")]
    job_type: String,
    versions: Vec<ArgsSchema>,
}

/// All schemas by job type, the newest version first.
#[derive(Serialize, ToSchema)]
struct ArgsSchemas {
    schemas: Vec<ArgsSchema>,
    items: Vec<ArgsSchema>,
    count: usize,
}

/// A schema to be registered.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({
    "schema": {"type": "array", "minItems": 1, "prefixItems": [{"type": "string", "format": "email"}]},
    "mode": "enforce",
}))]
struct NewArgsSchema {
    /// JSON Schema 2020-12, draft 7, or the draft of `$schema`.
    #[schema(value_type = Map<String, Value>)]
    schema: Option<RawJson>,
    #[schema(ignore)]
    args_schema: Option<RawJson>,
    /// off (the default), warn or enforce.
    mode: Option<String>,
}

/// A new mode.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"mode": "enforce"}))]
struct SchemaMode {
    /// off, warn or enforce.
    #[serde(deserialize_with = "filled")]
    mode: String,
}
