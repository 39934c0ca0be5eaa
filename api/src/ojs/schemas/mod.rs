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
use serde_json::Value;
use turnstone_domain::schema::RegisteredSchema;
use turnstone_domain::{RawJson, RawObject};
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

/// Returns a schema as clients see it.
fn shown(schema: &RegisteredSchema) -> RawObject {
    let mut out = RawObject::new();
    out.insert("type", schema.job_type.as_str());
    out.insert("version", schema.version);
    out.insert("mode", schema.mode.as_str());
    out.insert("schema", RawJson::from_text(schema.body.clone()).unwrap_or_else(|_| RawJson::null()));
    out.insert("created_at", schema.created_at.to_rfc3339());
    out
}

fn list(schemas: &[RegisteredSchema]) -> Result<RawJson, OjsError> {
    let shown: Vec<RawObject> = schemas.iter().map(shown).collect();
    let text = serde_json::to_string(&shown).and_then(RawJson::from_text);
    text.map_err(|_| OjsError::internal("The schemas could not be written."))
}

/// A version of the schema of a job type.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct ArgsSchema {
    #[schema(rename = "type", example = "email.send")]
    job_type: String,
    #[schema(example = 1)]
    version: i64,
    /// enforce, warn or off.
    mode: String,
    /// The schema of `args`.
    schema: Value,
    created_at: String,
}

/// Versions of the schema of a job type, the newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct ArgsSchemaVersions {
    #[schema(rename = "type")]
    job_type: String,
    versions: Vec<ArgsSchema>,
}

/// All schemas by job type, the newest version first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct ArgsSchemas {
    schemas: Vec<ArgsSchema>,
    items: Vec<ArgsSchema>,
    count: u64,
}

/// A schema to be registered.
#[derive(ToSchema)]
#[schema(example = json!({
    "schema": {"type": "array", "minItems": 1, "prefixItems": [{"type": "string", "format": "email"}]},
    "mode": "enforce",
}))]
#[expect(dead_code, reason = "described, never built")]
struct NewArgsSchema {
    /// JSON Schema 2020-12, draft 7, or the draft of `$schema`.
    schema: serde_json::Map<String, Value>,
    /// off (the default), warn or enforce.
    mode: Option<String>,
}

/// A new mode.
#[derive(ToSchema)]
#[schema(example = json!({"mode": "enforce"}))]
#[expect(dead_code, reason = "described, never built")]
struct SchemaMode {
    /// off, warn or enforce.
    mode: String,
}
