//! The audit: a chain of entries, one for each change through the API and for each refused request.
//!
//! The store appends the entry of a change in the change's own transaction. Enqueueing and the calls of workers over HTTP
//! are left out: events of jobs record both, with the principal in `meta.turnstone_submitted_by`.

pub(crate) mod chain;
pub(crate) mod list;
pub(crate) mod refused;
pub(crate) mod routes;

use crate::agents::TENANTS;
use crate::request::sent_id;
use axum::body::Body;
use axum::extract::{ConnectInfo, Query, Request};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use futures::TryStreamExt as _;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use turnstone_domain::Timestamp;
use turnstone_domain::principal::Principal;
use turnstone_store::AuditNote;
use utoipa::ToSchema;

/// The principal of a request without a known one.
const UNKNOWN: &str = "-";
/// The most characters of a path in an entry.
const TARGET_CHARACTERS: usize = 512;
/// The operations on agents begin with this path.
const AGENTS: &str = "/agents";
/// The operations that enqueue jobs.
const ENQUEUEING: [&str; 2] = ["/ojs/v1/jobs", "/ojs/v1/jobs/batch"];

/// An entry of the audit.
#[derive(ToSchema)]
#[schema(as = AuditEntry)]
#[expect(dead_code, reason = "the domain's own type is serialised")]
struct DescribedEntry {
    /// Its number; the first is 1, and there are no gaps.
    seq: i64,
    /// Milliseconds since the Unix epoch.
    at: i64,
    /// The principal; `-` for a request without a known one.
    principal: String,
    /// null for the fleet.
    tenant: Option<String>,
    /// Method and path of the operation.
    #[schema(example = "POST /reviews/{id}/approve")]
    action: String,
    /// The path of the request; of a registration with `tenants`, also that parameter.
    target: String,
    /// `done`, or the status and the code of a refusal.
    outcome: String,
    /// SHA-256 of the replaced value, where the change replaces one.
    before: Option<String>,
    /// SHA-256 of the request's body.
    after: Option<String>,
    /// The client's address.
    source: Option<String>,
    request_id: Option<String>,
    /// The hash of the entry before; empty for the first.
    previous: String,
    /// SHA-256 of all other members.
    hash: String,
}

/// Returns the facts of a request for its entry.
pub(crate) fn note(
    request: &Request,
    action: &str,
    principal: Option<&Principal>,
    at: Timestamp,
) -> AuditNote {
    let source = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let identity = |known: &Principal| known.identity.clone().unwrap_or_else(|| known.name.clone());
    AuditNote {
        principal: principal.map_or_else(|| UNKNOWN.to_owned(), identity),
        tenant: principal.and_then(|known| known.tenant.clone()),
        action: format!("{} {action}", request.method()),
        target: target(request.uri(), action).chars().take(TARGET_CHARACTERS).collect(),
        source: source.map(|ConnectInfo(address)| address.ip().to_string()),
        request_id: sent_id(request.headers()),
        body: Arc::default(),
        at,
    }
}

/// Returns the path of a request. A registration also has the tenants that the agent is to serve, which are not in its
/// body.
fn target(uri: &Uri, action: &str) -> String {
    let parameters =
        Query::<Vec<(String, String)>>::try_from_uri(uri).map(|Query(all)| all).unwrap_or_default();
    let tenants = parameters.into_iter().filter(|(name, _)| name == TENANTS && action.starts_with(AGENTS));
    tenants.fold(uri.path().to_owned(), |target, (name, value)| format!("{target}?{name}={value}"))
}

/// Returns a request whose body is digested for its entry while it is read.
pub(crate) fn digested(request: Request, note: &AuditNote) -> Request {
    let digest = Arc::clone(&note.body);
    request.map(|body| {
        Body::from_stream(body.into_data_stream().inspect_ok(move |part| {
            digest.lock().unwrap_or_else(PoisonError::into_inner).feed(part);
        }))
    })
}

/// Returns true if requests of this method change something.
pub(crate) fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Returns true if the changes by an operation have entries.
pub(crate) fn is_audited(path: &str) -> bool {
    !ENQUEUEING.contains(&path)
}

/// Returns true if the response to an admitted request belongs into the audit: the principal may not do this, or what
/// it names does not exist for it.
pub(crate) fn is_refusal(response: &Response, is_audited: bool) -> bool {
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => true,
        StatusCode::NOT_FOUND => is_audited,
        _ => false,
    }
}
