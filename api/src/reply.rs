//! Responses: JSON bodies, and errors in the one shape of OJS.

use crate::caps;
use crate::outage::store_failed;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use std::any::Any;
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::ids::shown;
use turnstone_ojs::{OjsError, QUEUE_FULL};
use turnstone_store::{NotContinued, StoreError};
use turnstone_telemetry::redact;

/// The header that prevents proxies from buffering a stream.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const QUEUE_DEPTH: HeaderName = HeaderName::from_static("x-ojs-queue-depth");
const QUEUE_BOUND: HeaderName = HeaderName::from_static("x-ojs-queue-bound");

/// The result of an endpoint.
pub(crate) type Answer = Result<Response, Failure>;

/// The media type of every JSON body until [`crate::stamp`] replaces it by that of OJS where OJS applies.
pub(crate) const JSON: &str = "application/json";

/// An error on its way to the client. The body is written by [`crate::stamp`], which knows the request's id.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) OjsError);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        if self.0.retryable && matches!(self.0.status, 429 | 503) {
            let wait = self.0.details.get("retry_after").and_then(Value::as_u64).unwrap_or(1);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait));
        }
        if self.0.code == QUEUE_FULL {
            for (name, fact) in [(QUEUE_DEPTH, "depth"), (QUEUE_BOUND, "bound")] {
                let number = self.0.details.get(fact).and_then(Value::as_u64).map(HeaderValue::from);
                response.headers_mut().extend(number.map(|number| (name, number)));
            }
        }
        response.extensions_mut().insert(self.0);
        response
    }
}

impl From<OjsError> for Failure {
    fn from(error: OjsError) -> Self {
        Self(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::NotAttested { queue, why } => Self(
                OjsError::validation(
                    "ext_attest",
                    format!("Queue {queue} does not take this job: it {why}."),
                )
                .with("queue", queue.as_str()),
            ),
            StoreError::Nul { .. } => Self(OjsError::nul("a text of the request")),
            StoreError::DuplicateJob(id) => Self(OjsError::duplicate(id.shown())),
            StoreError::AmbiguousId { id, tenants } => Self(OjsError::ambiguous(id, tenants)),
            StoreError::CursorLost { cursor } => Self(OjsError::cursor_lost(cursor)),
            StoreError::UnknownPlace(_) => Self(OjsError::invalid_request(
                "after",
                "is the id of no job that is stored; begin the list again, or page with `offset` or `page`",
            )),
            StoreError::DuplicateWorkflow(id) => Self(OjsError::duplicate_workflow(shown(id))),
            StoreError::QueueFull { queue, depth, bound } => {
                Self(OjsError::queue_full(queue, depth.unsigned_abs(), bound.unsigned_abs()))
            }
            StoreError::TenantLimit { tenant, limit, current, maximum } => {
                Self(OjsError::tenant_limit(tenant, limit, *current, *maximum))
            }
            StoreError::TooMany { what, most } => Self(caps::reached(what, *most)),
            StoreError::NotUnique { existing, .. } => Self(OjsError::not_unique(existing.as_str())),
            StoreError::TooDeep { depth, most, .. } => {
                let error = JobError::new(FailureKind::DelegationDepth, error.to_string());
                Self(OjsError::agent(error.with("depth", *depth).with("max_depth", *most)))
            }
            StoreError::TreeFull { jobs, most, .. } => {
                let error = JobError::new(FailureKind::TreeJobs, error.to_string());
                Self(OjsError::agent(error.with("jobs", *jobs).with("max_jobs_per_tree", *most)))
            }
            StoreError::UnknownParent { parent, .. } => {
                let shown = parent.as_str().chars().take(100).collect::<String>();
                let why = format!(
                    "names job `{shown}`, which is no job of an agent here; name the agent's job, or leave it out"
                );
                Self(OjsError::agent_parameter("ext_agent_parent_id", why))
            }
            StoreError::NotContinued { engagement, why } => Self(not_continued(engagement.as_str(), *why)),
            StoreError::NotRegistered { agent, is_other } => Self(not_registered(agent, *is_other)),
            StoreError::Database { .. }
            | StoreError::Unavailable { .. }
            | StoreError::Redis { .. }
            | StoreError::Unfit(_)
            | StoreError::Misconfigured(_)
            | StoreError::Closed => {
                store_failed!(error, error, "the store failed; requests get 503 until it answers");
                Self(OjsError::backend("The store did not answer; nothing was written."))
            }
            StoreError::Unreadable { column, .. } => {
                log_unreadable(&error);
                let message = format!("A stored row cannot be read by this version (column {column}).");
                Self(damaged(message))
            }
            // Only schedulers and workers receive these; no handler causes them.
            StoreError::Deposed | StoreError::WorkerNameTaken { .. } => {
                Self(OjsError::internal(error.to_string()))
            }
            StoreError::Inconsistent { table, row, .. } => {
                log_unreadable(&error);
                Self(damaged(format!("Row {row} of table {table} cannot be read by this version.")))
            }
        }
    }
}

fn log_unreadable(error: &StoreError) {
    store_failed!(error, error, "a stored row cannot be read");
}

/// Returns the error for a row that cannot be read: trying again does not help.
fn damaged(message: String) -> OjsError {
    let hint = "Restore the row from a backup; `turnstone doctor --data` names every row that is damaged.";
    OjsError { retryable: false, ..OjsError::new(500, "internal_error", message, hint) }
}

/// Returns why an engagement takes no further input.
fn not_continued(id: &str, why: NotContinued) -> OjsError {
    match why {
        NotContinued::Unknown => OjsError::not_found("engagement", id),
        NotContinued::Ended(state) => {
            OjsError::conflict(format!("Engagement {id} has ended; it takes no further input."))
                .with("state", state.as_str())
        }
        NotContinued::InReview => OjsError::conflict(format!(
            "Engagement {id} waits for a review; it takes further input when that is answered."
        )),
    }
}

/// Returns why an imported engagement does not run.
fn not_registered(agent: &str, is_other: bool) -> OjsError {
    let why = match is_other {
        true => "is registered here with another definition",
        false => "is not registered here",
    };
    let message = format!("The engagement was imported, and its agent `{agent}` {why}; it does not run.");
    let hint = "An operator of the fleet registers this agent with the document that the engagement ran with, or trusts the \
                key of the other server in `[attest] trusted` before the import. Until then the engagement can be read, \
                compared, exported and replayed.";
    OjsError::new(409, "agent_not_registered", message, hint).with("agent", agent)
}

/// 200 with a JSON body.
pub(crate) fn ok(body: &impl Serialize) -> Response {
    json(StatusCode::OK, body)
}

/// Returns a stream of events, which no proxy may cache or buffer.
pub(crate) fn streamed(events: impl IntoResponse) -> Response {
    let own =
        [(CACHE_CONTROL, HeaderValue::from_static("no-store")), (BUFFERING, HeaderValue::from_static("no"))];
    let mut response = events.into_response();
    own.into_iter().for_each(|(name, value)| drop(response.headers_mut().insert(name, value)));
    response
}

/// Returns a JSON body with any status.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match text(body) {
        Ok(text) => json_text(status, text),
        Err(failure) => failure.into_response(),
    }
}

/// Returns a body that is JSON already, with any status.
pub(crate) fn json_text(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, JSON)], text).into_response()
}

/// Returns a value as JSON text.
///
/// # Errors
/// 500 when the value has no JSON form.
pub(crate) fn text(body: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(body).map_err(unwritable)
}

/// Apart, because [`text`] is compiled for each type of answers.
fn unwritable(error: serde_json::Error) -> Failure {
    tracing::error!(%error, "an answer could not be written");
    Failure(OjsError::internal("The answer could not be written."))
}

/// 404 for a path that does not exist.
pub(crate) async fn unknown_route(uri: Uri) -> Failure {
    let hint = "GET /ojs/manifest says what this server offers.";
    Failure(OjsError::new(404, "not_found", format!("There is nothing at {}.", path_of(&uri)), hint))
}

/// 405 for a path that exists, with another method.
pub(crate) async fn wrong_method(method: Method, uri: Uri) -> Failure {
    let message = format!("{} does not understand {method}.", path_of(&uri));
    Failure(OjsError::new(
        405,
        "method_not_allowed",
        message,
        "The header Allow names the methods that it understands.",
    ))
}

fn path_of(uri: &Uri) -> String {
    uri.path().chars().take(200).collect()
}

/// 500 for an endpoint that panicked.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response<Body> {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    tracing::error!(panic = %redact(words), "an endpoint panicked");
    Failure(OjsError::internal(
        "The server made a mistake while it answered; the request may or may not have had its effect.",
    ))
    .into_response()
}
