//! Requests: path segments, query parameters and bodies, with errors in the one shape.

use crate::api::App;
use crate::reply::Failure;
use axum::body::Bytes;
use axum::extract::{FromRef, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Uri};
use futures::StreamExt;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::Arc;
use turnstone_domain::principal::Principal;
use turnstone_domain::{JobId, RawObject, Timestamp};
use turnstone_ojs::OjsError;
use turnstone_ojs::body::refuse_nul;
use turnstone_ojs::work::{is_lease_token, one_token};
use turnstone_store::Page;
use utoipa::ToSchema;

/// The header with the id of a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A body that is too large is read up to this many bytes. The client then reads the response instead of a closed
/// connection while it still writes.
const DRAINED_BYTES: usize = 8 * 1024 * 1024;

/// The one variable segment of the path, decoded.
pub(crate) struct Segment(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let [segment] = segments(parts, state).await?;
        Ok(Self(segment))
    }
}

/// The two variable segments of the path, decoded.
pub(crate) struct Segments(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let [first, second] = segments(parts, state).await?;
        Ok(Self(first, second))
    }
}

async fn segments<S: Send + Sync, const N: usize>(
    parts: &mut Parts,
    state: &S,
) -> Result<[String; N], Failure> {
    let found = Path::<Vec<String>>::from_request_parts(parts, state).await;
    match found.ok().and_then(|Path(segments)| <[String; N]>::try_from(segments).ok()) {
        Some(segments) if segments.iter().any(|segment| segment.contains('\0')) => {
            Err(OjsError::nul("the path").into())
        }
        Some(segments) => Ok(segments),
        None => Err(OjsError::invalid_request("the path", "is not UTF-8 after decoding").into()),
    }
}

/// The principal of the request.
pub(crate) struct By(pub(crate) Arc<Principal>);

impl<S: Send + Sync> FromRequestParts<S> for By {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let principal = parts.extensions.get::<Arc<Principal>>().cloned();
        Ok(Self(principal.ok_or_else(OjsError::unauthorized)?))
    }
}

/// The tenant of the request (OJS multi-tenancy): that of its principal, or the one of the header `X-OJS-Tenant` for a
/// principal of the fleet. `None` is the whole fleet.
pub(crate) struct Tenant {
    name: Option<String>,
    /// The principal, whose tenant is the same.
    pub(crate) principal: Arc<Principal>,
}

/// A header of a trace has at most this many characters.
const TRACE_CHARACTERS: usize = 8_192;

/// A tenant's name has at most this many characters.
const TENANT_CHARACTERS: usize = 128;

impl Tenant {
    /// Its name, as the store takes it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the job that an id of the request names. Ids are unique per tenant: without a tenant it is looked for.
    ///
    /// # Errors
    /// 409 `ambiguous_id` when several tenants have a job with this id; the error of the store.
    pub(crate) async fn job(&self, app: &App, id: &str) -> Result<JobId, Failure> {
        let id = JobId::from(id);
        if self.name.is_some() {
            return Ok(id);
        }
        Ok(app.api.store.views.unique_id(&id).await?)
    }

    /// Its name, to be kept.
    pub(crate) fn into_name(self) -> Option<String> {
        self.name
    }

    /// Returns the same request for the owner of a thing: a tenant, or the empty name for what belongs to none.
    pub(crate) fn of_owner(&self, owner: Option<String>) -> Self {
        Self { name: Some(owner.unwrap_or_default()), principal: Arc::clone(&self.principal) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Tenant {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let By(principal) = By::from_request_parts(parts, state).await?;
        Ok(Self { name: principal.tenant.clone(), principal })
    }
}

/// The header `X-OJS-Lease-Token` of a worker's request.
pub(crate) struct LeaseToken(pub(crate) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for LeaseToken {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let mut sent = parts.headers.get_all("x-ojs-lease-token").iter();
        let Some(value) = sent.next() else { return Ok(Self(None)) };
        let token = value.to_str().unwrap_or_default().trim();
        if is_lease_token(token) && sent.next().is_none() {
            return Ok(Self(Some(token.to_owned())));
        }
        let why = "must be there once at most, with the token as the job was fetched with it";
        Err(OjsError::invalid_request("the header X-OJS-Lease-Token", why).into())
    }
}

impl LeaseToken {
    /// Returns the token of the request, which its body may have as well.
    ///
    /// # Errors
    /// 400 when both are there and differ.
    pub(crate) fn or(self, body: Option<String>) -> Result<Option<String>, OjsError> {
        one_token(self.0, body)
    }
}

/// Returns the header `X-OJS-Tenant`.
///
/// # Errors
/// 400 when it is no name of a tenant.
pub(crate) fn sent_tenant(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut sent = headers.get_all("x-ojs-tenant").iter();
    let Some(value) = sent.next() else { return Ok(None) };
    let name = value.to_str().unwrap_or_default().trim();
    let visible = name.bytes().all(|byte| byte.is_ascii_graphic());
    if visible && (1..=TENANT_CHARACTERS).contains(&name.len()) && sent.next().is_none() {
        return Ok(Some(name.to_owned()));
    }
    let why = "must be there once at most and have 1 to 128 visible ASCII characters";
    Err(OjsError::invalid_request("the header X-OJS-Tenant", why).into())
}

/// The client's id and trace of the request (OJS middleware, OJS observability). The id is the header `X-Request-Id`,
/// when it can be echoed. The trace is the W3C header `traceparent` with `tracestate` and `baggage`.
pub(crate) struct RequestId {
    name: Option<String>,
    trace: Vec<(&'static str, String)>,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self { name: sent_id(&parts.headers), trace: sent_trace(&parts.headers) })
    }
}

impl RequestId {
    /// Keeps the id and the trace in the `meta` of a job that is to be enqueued, unless the client has set them there.
    pub(crate) fn keep(&self, job: &mut RawObject) {
        if self.name.is_none() && self.trace.is_empty() {
            return;
        }
        let meta = job.given("meta").map_or_else(|| Some(RawObject::new()), |meta| meta.parse().ok());
        // A value that is no object is refused where it is read.
        if let Some(mut meta) = meta {
            if let Some(name) = &self.name {
                meta.insert_new("request_id", name.as_str());
            }
            // The job's own trace is not mixed with that of the request.
            if !meta.contains("traceparent") {
                for (name, value) in &self.trace {
                    meta.insert_new(*name, value.as_str());
                }
            }
            job.insert("meta", meta);
        }
    }
}

/// Returns the client's own id, when it is short and visible ASCII.
pub(crate) fn sent_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    ((1..=200).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())).then(|| id.to_owned())
}

/// Returns the trace that a request is part of; empty without a well-formed one.
fn sent_trace(headers: &HeaderMap) -> Vec<(&'static str, String)> {
    let sent = |name: &'static str| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        ((1..=TRACE_CHARACTERS).contains(&value.len())).then(|| (name, value.to_owned()))
    };
    let Some(parent) = sent("traceparent").filter(|(_, value)| is_traceparent(value)) else {
        return Vec::new();
    };
    std::iter::once(parent).chain(["tracestate", "baggage"].into_iter().filter_map(sent)).collect()
}

/// `00-TRACE-SPAN-FLAGS` in lower-case hex, with ids that are not zero.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let id = |part: &str, length: usize| hex(part, length) && part.bytes().any(|byte| byte != b'0');
    matches!(parts.as_slice(), [version, trace, span, flags, ..]
        if hex(version, 2) && *version != "ff" && id(trace, 32) && id(span, 16) && hex(flags, 2))
}

/// The query parameters.
pub(crate) struct Params(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Self::read(&parts.uri)
    }
}

impl Params {
    fn read(uri: &Uri) -> Result<Self, Failure> {
        match Query::<HashMap<String, String>>::try_from_uri(uri) {
            Ok(Query(map)) => match map.iter().find(|(_, value)| value.contains('\0')) {
                Some((name, _)) => Err(OjsError::nul(name).into()),
                None => Ok(Self(map)),
            },
            Err(error) => {
                Err(OjsError::invalid_request("the query", format!("cannot be read: {}", error.body_text()))
                    .into())
            }
        }
    }

    /// Returns a parameter that is given and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Reads a parameter that is one of a closed set of words.
    pub(crate) fn word<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Option<T>,
        words: &str,
    ) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match read(text) {
            Some(value) => Ok(Some(value)),
            None => Err(OjsError::invalid_request(name, format!("must be one of {words}")).into()),
        }
    }

    /// Returns a parameter that may not be empty: what it filters would be everything then.
    pub(crate) fn filled(&self, name: &str) -> Result<Option<&str>, Failure> {
        match self.0.get(name).map(String::as_str) {
            Some("") => Err(OjsError::invalid_request(name, "must not be empty; leave it out").into()),
            text => Ok(text),
        }
    }

    /// Reads a time with a zone (RFC 3339).
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.filled(name)? else { return Ok(None) };
        let why = "must be a time with a zone, such as 2026-01-31T12:00:00Z";
        match Timestamp::parse_rfc3339(text) {
            Some(at) => Ok(Some(at)),
            None => Err(OjsError::invalid_request(name, why).into()),
        }
    }

    /// Reads a whole number within bounds, or returns `default` when it is not given.
    pub(crate) fn number<T>(&self, name: &str, default: T, least: T, most: T) -> Result<T, Failure>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
    {
        let Some(text) = self.text(name) else { return Ok(default) };
        match text.parse::<T>() {
            Ok(number) if number >= least && number <= most => Ok(number),
            _ => {
                Err(OjsError::invalid_request(name, format!("must be a whole number from {least} to {most}"))
                    .into())
            }
        }
    }

    /// Reads a yes or no, in any of the spellings of clients.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        let read = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        self.word(name, read, "true, false, 1 and 0")
    }

    /// Reads `limit` (default 50, at most `most`) and `offset`, or the `cursor` of the part before, as data lists have
    /// them.
    pub(crate) fn slice(&self, most: u32) -> Result<Page, Failure> {
        let limit: u32 = self.number("limit", most.min(50), 1, most)?;
        let cursor: u32 = self.number("cursor", 0, 0, u32::MAX)?;
        Ok(Page { limit, offset: self.number("offset", cursor, 0, u32::MAX)? })
    }

    /// Reads `after`, the last entry of the part before.
    pub(crate) fn after(&self) -> Option<&str> {
        self.text("after")
    }

    /// `page` (from 1) and `per_page` (default 20, at most 100), as admin lists have them.
    pub(crate) fn page(&self) -> Result<(u32, Page), Failure> {
        let page: u32 = self.number("page", 1, 1, u32::MAX)?;
        let limit: u32 = self.number("per_page", 20, 1, 100)?;
        Ok((page, Page { limit, offset: (page - 1).saturating_mul(limit) }))
    }
}

/// 400: the list cannot be continued after this entry.
pub(crate) fn unknown_place(what: &str) -> Failure {
    let why = format!("is the id of no {what} that is stored; begin the list again");
    OjsError::invalid_request("after", why).into()
}

/// The longest body of a request, in bytes.
pub(crate) struct BodyLimit(pub(crate) usize);

/// The whole body, with any media type.
pub(crate) struct Raw(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw
where
    BodyLimit: FromRef<S>,
{
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        read_up_to(request, BodyLimit::from_ref(state).0).await.map(Self)
    }
}

/// A document in lines of JSON, which may be larger than other requests, with any media type.
#[derive(ToSchema)]
#[schema(as = BinaryDocument, value_type = String, format = Binary)]
pub(crate) struct Document(pub(crate) Bytes);

/// The most bytes of a document.
const DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

impl<S: Send + Sync> FromRequest<S> for Document
where
    BodyLimit: FromRef<S>,
{
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let body = read_up_to(request, BodyLimit::from_ref(state).0.max(DOCUMENT_BYTES)).await?;
        refuse_nul(&body)?;
        Ok(Self(body))
    }
}

/// The whole body, whose media type is JSON or absent.
pub(crate) struct JsonBytes(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonBytes
where
    BodyLimit: FromRef<S>,
{
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        check_media_type(request.headers())?;
        let body = read_up_to(request, BodyLimit::from_ref(state).0).await?;
        refuse_nul(&body)?;
        Ok(Self(body))
    }
}

impl JsonBytes {
    /// Reads the body.
    ///
    /// # Errors
    /// 400, which names the member that is wrong.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let mut json = serde_json::Deserializer::from_slice(&self.0);
        let wrong = |field: &str, error: &serde_json::Error| {
            OjsError::invalid_request(field, format!("cannot be used: {error}"))
        };
        let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            wrong(if path == "." { "the body" } else { &path }, error.inner())
        })?;
        json.end().map_err(|error| wrong("the body", &error))?;
        Ok(read)
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let kind = value.to_str().unwrap_or("").split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    let why = "must be application/openjobspec+json or application/json";
    Err(OjsError::invalid_request("the header Content-Type", why).into())
}

async fn read_up_to(request: Request, limit: usize) -> Result<Bytes, Failure> {
    let headers = request.headers();
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    if announced.is_some_and(|bytes: usize| {
        bytes > DRAINED_BYTES.max(limit) || (bytes > limit && headers.contains_key(EXPECT))
    }) {
        return Err(OjsError::too_large(limit).into());
    }
    let mut body = Vec::with_capacity(announced.unwrap_or(0).min(limit));
    let mut seen = 0_usize;
    let mut chunks = request.into_body().into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| OjsError::invalid_payload("The body ended before it was complete."))?;
        seen = seen.saturating_add(chunk.len());
        match seen {
            fits if fits <= limit => body.extend_from_slice(&chunk),
            endless if endless > DRAINED_BYTES.max(limit) => break,
            _ => body = Vec::new(),
        }
    }
    if seen > limit { Err(OjsError::too_large(limit).into()) } else { Ok(body.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn tenant(sent: &[&[u8]]) -> Result<Option<String>, u16> {
        let mut headers = HeaderMap::new();
        for value in sent {
            let name = HeaderName::from_static("x-ojs-tenant");
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        sent_tenant(&headers).map_err(|failure| failure.0.status)
    }

    #[test]
    fn a_tenant_is_named_once_in_visible_characters_or_not_at_all() {
        assert_eq!(tenant(&[]), Ok(None));
        assert_eq!(tenant(&[b"acme-corp"]), Ok(Some("acme-corp".to_owned())));
        assert_eq!(tenant(&[&[b'a'; 128]]).map(|name| name.map(|name| name.len())), Ok(Some(128)));
        let long = [b'a'; 129];
        let refused: [&[&[u8]]; 6] = [&[b""], &[b" "], &[b"a b"], &[&long], &["ü".as_bytes()], &[b"a", b"b"]];
        for sent in refused {
            assert_eq!(tenant(sent), Err(400), "{sent:?}");
        }
    }

    #[test]
    fn a_job_is_part_of_the_trace_of_its_request_unless_it_names_one() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let kept = |sent: &[(&str, &str)], job: &str| {
            let headers = sent.iter().map(|(name, value)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
            });
            let mut job: RawObject = serde_json::from_str(job).unwrap();
            RequestId { name: None, trace: sent_trace(&headers.collect()) }.keep(&mut job);
            job.to_raw().as_str().to_owned()
        };
        let both = [("traceparent", parent), ("tracestate", "v=1")];
        let meta = format!(r#"{{"meta":{{"traceparent":"{parent}","tracestate":"v=1"}}}}"#);
        assert_eq!(kept(&both, "{}"), meta);
        let own = r#"{"meta":{"traceparent":"00-1-2-01"}}"#;
        assert_eq!(kept(&both, own), own);
        for wrong in ["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "x", "00-1-2-3"] {
            assert_eq!(kept(&[("traceparent", wrong), ("baggage", "a=b")], "{}"), "{}", "{wrong}");
        }
    }

    #[test]
    fn a_request_is_remembered_by_its_name_unless_the_job_has_one() {
        let named = RequestId { name: Some("r-1".to_owned()), trace: Vec::new() };
        for (sent, kept) in [
            (r#"{"a":1}"#, r#"{"a":1,"meta":{"request_id":"r-1"}}"#),
            (r#"{"meta":{"m":1.50}}"#, r#"{"meta":{"m":1.50,"request_id":"r-1"}}"#),
            (r#"{"meta":{"request_id":"own"}}"#, r#"{"meta":{"request_id":"own"}}"#),
            (r#"{"meta":5}"#, r#"{"meta":5}"#),
        ] {
            let mut job: RawObject = serde_json::from_str(sent).unwrap();
            RequestId { name: None, trace: Vec::new() }.keep(&mut job);
            assert_eq!(job.to_raw().as_str(), sent);
            named.keep(&mut job);
            assert_eq!(job.to_raw().as_str(), kept);
        }
    }
}
