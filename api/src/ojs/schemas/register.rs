//! `PUT /ojs/v1/admin/schemas/{type}/{version}`: a version is registered once, so that its meaning never changes for
//! jobs that name it.

use super::{ArgsSchema, NewArgsSchema, named};
use crate::api::{App, Shared};
use crate::blocking;
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Segments};
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;
use turnstone_domain::schema::{MOST_BYTES, Mode, RegisteredSchema, Schema};
use turnstone_ojs::{OjsError, check_job_type, request};

/// Registers a version of the schema of a job type's arguments.
#[utoipa::path(
    put, path = "/ojs/v1/admin/schemas/{type}/{version}", operation_id = "admin_register_schema", tag = "schemas",
    security(("fleet" = ["operator"])),
    params(
        ("type" = String, Path, description = "The job type."),
        ("version" = i64, Path, description = "From 1.", minimum = 1, maximum = 1_000_000_000),
    ),
    request_body = NewArgsSchema,
    responses(
        (status = 201, description = "It is registered.", body = ArgsSchema),
        (status = 409, description = "This version is registered already.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn register(
    State(app): State<Shared>,
    segments: Segments,
    JsonBytes(bytes): JsonBytes,
) -> Answer {
    let (job_type, version) = named(segments)?;
    let schema = take(&app, request::read(&bytes)?, job_type, version).await?;
    Ok(reply::json(StatusCode::CREATED, &ArgsSchema::from(&schema)))
}

/// Checks a schema and registers it.
pub(super) async fn take(
    app: &App,
    sent: NewArgsSchema,
    job_type: String,
    version: i64,
) -> Result<RegisteredSchema, Failure> {
    check_job_type(&job_type).map_err(|why| OjsError::invalid_request("type", why))?;
    let now = app.api.clock.now();
    let schema = blocking::run(move || read(sent, job_type, version, now)).await??;
    let registered = app.api.store.schemas.register(schema.clone()).await?;
    app.schemas.forget(&schema.job_type);
    if !registered {
        let message =
            format!("Version {version} of the schema of {} is registered already.", schema.job_type);
        let hint = "Register the changed schema as another version, or remove this one first.";
        return Err(OjsError::new(409, "conflict", message, hint).into());
    }
    Ok(schema)
}

fn read(
    sent: NewArgsSchema,
    job_type: String,
    version: i64,
    created_at: turnstone_domain::Timestamp,
) -> Result<RegisteredSchema, OjsError> {
    let body = sent.schema.or(sent.args_schema);
    let body = body.ok_or_else(|| OjsError::invalid_request("schema", "is missing"))?;
    if body.as_str().len() > MOST_BYTES {
        return Err(OjsError::invalid_request("schema", format!("must have at most {MOST_BYTES} bytes")));
    }
    let unreadable = |error| OjsError::invalid_request("schema", format!("cannot be read: {error}"));
    let value: Value = body.parse().map_err(unreadable)?;
    if !value.is_object() {
        return Err(OjsError::invalid_request("schema", "must be an object"));
    }
    let unusable = |why: String| {
        let why: String = why.chars().take(300).collect();
        OjsError::invalid_request("schema", format!("cannot be used: {why}"))
    };
    Schema::compile_registered(&value).map_err(unusable)?;
    let mode = sent.mode.map_or(Ok(Mode::Off), |word| mode(&word))?;
    Ok(RegisteredSchema { job_type, version, mode, body: body.into_text(), created_at })
}

/// Reads a mode; the registry's text calls `enforce` `strict`.
pub(super) fn mode(word: &str) -> Result<Mode, OjsError> {
    let words = || format!("must be one of {}", Mode::WORDS.join(", "));
    let word = if word == "strict" { Mode::Enforce.as_str() } else { word };
    Mode::parse(word).ok_or_else(|| OjsError::invalid_request("mode", words()))
}
