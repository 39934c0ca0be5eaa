//! The common parts of every response: the request's id, the OJS version, the media type, and the one error shape.

use crate::api::Shared;
use crate::reply::{Answer, Failure, JSON};
use crate::request::{REQUEST_ID, sent_id};
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use std::time::Instant;
use tracing::{Instrument, Span};
use turnstone_ojs::{MEDIA_TYPE, OjsError, SPEC_VERSION, speaks};
use turnstone_telemetry::names;
use turnstone_telemetry::propagation::{self, Carried, FIELDS};
use turnstone_telemetry::span::{self, Common};

const OJS_VERSION: HeaderName = HeaderName::from_static("ojs-version");
/// Paths that are polled every few seconds, and concern no particular job.
const UNSPANNED: [&str; 6] = ["/livez", "/ready", "/readyz", "/metrics", "/ojs/v1/health", "/health"];
/// The methods that OpenTelemetry knows.
const KNOWN: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"];

/// The outermost layer: adds ids, headers, error bodies, and one line in the log.
pub(crate) async fn stamp(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let request_id = sent_id(request.headers()).unwrap_or_else(|| format!("req_{}", app.api.ids.next()));
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let span = span(&method, route.as_ref(), request.headers());
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Some(error) = response.extensions_mut().remove::<OjsError>() {
        *response.body_mut() = Body::from(json!(error.reply(&request_id)).to_string());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    }
    let headers = response.headers_mut();
    if speaks_ojs(&path) && headers.get(CONTENT_TYPE).is_some_and(|kind| kind == JSON) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    }
    headers.insert(OJS_VERSION, HeaderValue::from_static(SPEC_VERSION));
    // A request of the Agent Protocol has its own id, which its response carries.
    if let Some(value) = HeaderValue::from_str(&request_id).ok().filter(|_| !headers.contains_key(REQUEST_ID))
    {
        headers.insert(REQUEST_ID, value);
    }
    let status = response.status().as_u16();
    span::say(&span, names::HTTP_STATUS, i64::from(status));
    if response.status().is_server_error() {
        span::fail(&span, response.status().as_str(), "");
    }
    if let Some(metrics) = &app.metrics {
        metrics.answered(&method, route.as_ref(), status, began.elapsed());
    }
    let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::debug!(parent: &span, %method, path, status, duration_us, request_id, "answered");
    response
}

/// Makes the span of a request, in the trace of its sender. Its name is the template of the path, so clients cannot
/// make up names.
fn span(method: &Method, route: Option<&MatchedPath>, headers: &HeaderMap) -> Span {
    let route = route.map(MatchedPath::as_str);
    if route.is_some_and(|route| UNSPANNED.contains(&route)) {
        return Span::none();
    }
    // An unknown method is a name of the client's making, too.
    let method = if KNOWN.contains(&method.as_str()) { method.as_str() } else { "_OTHER" };
    let name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    let span = tracing::info_span!(names::HTTP_ANSWER, otel.kind = "server", otel.name = name.as_str());
    let sent = |name: &&str| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned()));
    let sent: Carried = FIELDS.iter().filter_map(sent).collect();
    propagation::continue_from(&span, &sent, &Common::default(), None);
    span::say(&span, names::HTTP_METHOD, method);
    span::say(&span, names::HTTP_ROUTE, route);
    span
}

/// Refuses a client that requests another version of OJS.
pub(crate) async fn check_version(request: Request, next: Next) -> Answer {
    if let Some(version) = request.headers().get(OJS_VERSION).filter(|_| speaks_ojs(request.uri().path())) {
        let version = version.to_str().unwrap_or("?").trim();
        if !speaks(version) {
            let shown: String = version.chars().take(40).collect();
            let message =
                format!("OJS-Version `{shown}` is not supported; this server supports {SPEC_VERSION}.");
            return Err(OjsError::unsupported(message).into());
        }
    }
    Ok(next.run(request).await)
}

/// Refuses a request whose body is compressed (RFC 9110 §8.4): it would be read as it is.
pub(crate) async fn check_encoding(request: Request, next: Next) -> Answer {
    let encodings = request.headers().get_all(CONTENT_ENCODING);
    let words = encodings.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let is_plain =
        |word: &[u8]| word.trim_ascii().is_empty() || word.trim_ascii().eq_ignore_ascii_case(b"identity");
    if words.into_iter().all(is_plain) {
        return Ok(next.run(request).await);
    }
    let shown: Vec<_> = encodings.iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let shown: String = shown.join(", ").chars().take(40).collect();
    let message =
        format!("The header Content-Encoding has `{shown}`; this server takes no compressed bodies.");
    let hint = "Send the body as it is, without Content-Encoding.";
    let refused = Failure(OjsError::new(415, "unsupported_media_type", message, hint));
    let mut response = refused.into_response();
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(response)
}

/// Returns true if the JSON under this path has the media type of OJS.
pub(crate) fn speaks_ojs(path: &str) -> bool {
    matches!(path, "/health" | "/ready") || path == "/ojs" || path.starts_with("/ojs/")
}
