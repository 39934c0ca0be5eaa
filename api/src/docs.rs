//! The OpenAPI document: its frame, and the shapes that many endpoints share.
//!
//! Every endpoint describes itself in its own file (`#[utoipa::path]`). The router collects the descriptions, so the
//! served and the described endpoints are the same list. The types here exist for the document only.

#![expect(unused_qualifications, reason = "the derive of the schemas writes every name out in full")]

use crate::reply::{self, JSON};
use crate::stamp::speaks_ojs;
use axum::response::Response;
use serde_json::{Map, Value};
use std::mem;
use turnstone_ojs::MEDIA_TYPE;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{self, Content, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa::{OpenApi as _, ToSchema};

/// A media type, and the schema of its bodies.
type Body = (String, RefOr<Content>);

/// The schemes of operations, which name the scope; the list of an operation has the role that is needed.
const SCHEMES: [(&str, &str); 2] = [
    (
        "tenant",
        "A key or a token with the role. It concerns the data of its tenant; one of the fleet may name a tenant in X-OJS-Tenant.",
    ),
    ("fleet", "A key or a token of the fleet with the role, without X-OJS-Tenant."),
];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Turnstone",
        description = "A durable worker fleet for AI agents, and an Open Job Spec server."
    ),
    paths(openapi),
    components(schemas(ErrorReply, ErrorBody, Job, JobReply))
)]
struct Frame;

/// Returns the frame, to which the router adds the endpoints.
pub(crate) fn frame() -> OpenApi {
    Frame::openapi()
}

/// Adds the one shape of errors to every operation: every status that is not described is such an error. Under the paths
/// of OJS, JSON gets the media type of OJS, in which [`crate::stamp`] answers there.
pub(crate) fn finish(mut document: OpenApi) -> OpenApi {
    let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name("ErrorReply"))));
    let refused = ResponseBuilder::new()
        .description("Any other status is an error in one shape.")
        .content(MEDIA_TYPE, content.clone())
        .content(JSON, content)
        .build();
    let components = document.components.get_or_insert_default();
    for (scheme, what) in SCHEMES {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(what)).build();
        components.add_security_scheme(scheme, SecurityScheme::Http(bearer));
    }
    for (path, item) in &mut document.paths.paths {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch, &mut item.head];
        for operation in operations.into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            responses.values_mut().for_each(leave_streams_open);
            if speaks_ojs(path) {
                if let Some(RefOr::T(request)) = &mut operation.request_body {
                    in_ojs(&mut request.content);
                }
                for response in responses.values_mut() {
                    if let RefOr::T(response) = response {
                        in_ojs(&mut response.content);
                    }
                }
            }
            responses.entry("default".to_owned()).or_insert_with(|| RefOr::T(refused.clone()));
        }
    }
    document
}

/// Replaces the media type of JSON by that of OJS.
fn in_ojs<M: Default + IntoIterator<Item = Body> + FromIterator<Body>>(bodies: &mut M) {
    let in_ojs = |(kind, body): Body| (if kind == JSON { MEDIA_TYPE.to_owned() } else { kind }, body);
    *bodies = mem::take(bodies).into_iter().map(in_ojs).collect();
}

/// A stream of events is a text of no fixed form; validators would take a schema for that of each event's parts.
fn leave_streams_open(response: &mut RefOr<openapi::Response>) {
    if let RefOr::T(response) = response
        && let Some(RefOr::T(content)) = response.content.get_mut("text/event-stream")
    {
        content.schema = None;
    }
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "server",
    security(("tenant" = [])),
    responses((status = 200, description = "OpenAPI 3.1: everything that is served.", body = Map<String, Value>)),
)]
#[expect(dead_code, reason = "a placeholder for the route that answers with the finished document")]
fn openapi() {}

/// `GET /openapi.json`: the document.
pub(crate) fn answer(document: &OpenApi) -> Response {
    reply::ok(&serde_json::to_value(document).unwrap_or_default())
}

/// An error.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ErrorReply {
    error: ErrorBody,
}

/// The cause, the place, and the next step.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct ErrorBody {
    /// Stable; programs decide by it.
    #[schema(example = "not_found")]
    code: String,
    /// The cause and the place.
    message: String,
    /// True if the same request may succeed later without being changed.
    retryable: bool,
    /// The class of the error.
    #[schema(rename = "type")]
    error_type: String,
    /// The next step.
    hint: String,
    /// The address of the code's explanation.
    docs_url: String,
    /// Facts for programs, such as the field.
    details: Map<String, Value>,
    /// The request, as the server's log names it.
    request_id: String,
}

/// A job, with every further member that the client sent.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Job {
    #[schema(example = "1.0")]
    specversion: String,
    /// UUIDv7.
    id: String,
    #[schema(rename = "type", example = "email.send")]
    job_type: String,
    #[schema(example = "default")]
    queue: String,
    /// scheduled, available, pending, active, completed, retryable, cancelled or discarded.
    state: String,
    args: Vec<Value>,
    meta: Map<String, Value>,
    /// -100 to 100; higher goes first.
    priority: i64,
    /// How often it was claimed.
    attempt: i64,
    max_attempts: i64,
    /// RFC 3339, UTC.
    created_at: String,
    enqueued_at: String,
    /// While it is parked: the data of the event that parked it, such as `review_id`, `budget` or `children`.
    waits_for: Option<Map<String, Value>>,
    /// In lists: why this job cannot be read whole. Unreadable members are left out or empty.
    damaged: Option<String>,
}

/// The rows of a job as they are stored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct RawJob {
    job_id: String,
    rows: Vec<RawJobRow>,
}

/// A row as it is stored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct RawJobRow {
    table: String,
    /// A number, a text or null by column. A value that cannot be read is an object: `unreadable`, the reason, and `stored`,
    /// the text as it is stored.
    columns: Map<String, Value>,
}

/// A job, and the same in `job` for clients that expect a wrapper.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct JobReply {
    job: Job,
    id: String,
    state: String,
}

/// A job that was cancelled.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct CancelledJob {
    job: Job,
    id: String,
    state: String,
    /// Its state before.
    previous_state: String,
}

/// A job that is to run again.
#[derive(ToSchema)]
#[schema(example = json!({"override": {"queue": "mail-slow", "priority": 10}}))]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct RetryRequest {
    /// Options that were overridden.
    #[schema(rename = "override")]
    anew: Option<RetryOverride>,
}

/// Options that are not given stay as they were.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct RetryOverride {
    queue: Option<String>,
    #[schema(minimum = -100, maximum = 100)]
    priority: Option<i64>,
    #[schema(minimum = 1)]
    timeout_ms: Option<i64>,
    /// A retry policy, over the defaults.
    retry: Option<Map<String, Value>>,
}

/// Jobs, newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct JobPage {
    items: Vec<Job>,
    pagination: Pagination,
}

/// A part of a list of jobs.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct JobSlice {
    jobs: Vec<Job>,
    pagination: Slice,
}

/// The position of a part in its list.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Slice {
    /// Not in a list by `meta`.
    total: Option<u64>,
    limit: u32,
    offset: u32,
    has_more: bool,
    /// To be sent as `cursor` for the next part.
    next_cursor: Option<String>,
    /// In a list of jobs: to be sent as `after` for the next part. Jobs that arrive meanwhile do not move it.
    next_after: Option<String>,
}

/// The position of a page in its list.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Pagination {
    /// Not in a list by `meta`.
    total: Option<u64>,
    /// Not in a list by `meta`.
    page: Option<u32>,
    per_page: u32,
    /// In a list of jobs: true if more jobs follow.
    has_more: Option<bool>,
    /// In a list of jobs: to be sent as `after`, instead of `page`, for the next part.
    next_after: Option<String>,
}

/// A job to be enqueued. Members that are not listed are kept and returned; `ext_agent_*` make it an agent job.
#[derive(ToSchema)]
#[schema(example = json!({"type": "email.send", "args": ["ada@example.com", "welcome"], "options": {"queue": "mail"}}))]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Enqueue {
    /// Dot-separated parts of a-z, 0-9, `_`, `-`.
    #[schema(rename = "type")]
    job_type: String,
    args: Vec<Value>,
    /// UUIDv7; made by the server when it is left out.
    id: Option<String>,
    meta: Option<Map<String, Value>>,
    options: Option<Map<String, Value>>,
}
