//! One input of a user at OpenAgentSpec's endpoints (OAS-73): a JSON string, or an object with `input`.

use crate::reply::Failure;
use crate::request::JsonBytes;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Value, json};
use turnstone_domain::{RawJson, RawObject};
use turnstone_ojs::{Fields, OjsError, request};
use utoipa::ToSchema;

/// One input of a user; a text may be sent instead of an object.
#[derive(Deserialize, ToSchema)]
pub(crate) struct InputBody {
    /// The user's text, or the inputs of a flow; `text` means the same.
    #[serde(default, deserialize_with = "request::sent")]
    #[schema(value_type = Value, required)]
    input: Option<RawJson>,
    #[serde(default, deserialize_with = "request::sent")]
    #[schema(ignore)]
    text: Option<RawJson>,
    /// Becomes the job's `meta`; its `user` is the caller's user: `{"id": …, "email": …}`.
    #[schema(value_type = Option<Map<String, Value>>)]
    metadata: Option<RawJson>,
}

/// A user's text, and the client's metadata.
pub(crate) struct Input {
    /// The text; empty when values were sent.
    pub(crate) text: String,
    /// OJS `args` of the job: the text, or the inputs of a flow.
    pub(crate) args: Value,
    /// `metadata`, which becomes the job's `meta`.
    pub(crate) metadata: RawObject,
}

impl Input {
    /// Reads a body. The input of a flow may be a map of its inputs.
    ///
    /// # Errors
    /// 400 when it is no JSON, has another shape, or an unknown member.
    pub(crate) fn read(JsonBytes(bytes): &JsonBytes, is_flow: bool) -> Result<Self, Failure> {
        if bytes.trim_ascii_start().first() == Some(&b'"') {
            let text: String = serde_json::from_slice(bytes)
                .map_err(|error| OjsError::invalid_payload(format!("The body is not JSON: {error}.")))?;
            return Ok(Self { args: json!([text]), text, metadata: RawObject::new() });
        }
        let fields = Fields::read(bytes)?;
        if let Some(name) = fields.0.names().find(|name| !["input", "text", "metadata"].contains(name)) {
            let why = "is unknown here; send `input`, and `metadata` if need be";
            return Err(OjsError::invalid_request(name, why).into());
        }
        let InputBody { input, text, metadata } = fields.typed()?;
        if input.is_some() && text.is_some() {
            return Err(
                OjsError::invalid_request("text", "means the same as `input`; send one of them").into()
            );
        }
        let sent = input.or(text).and_then(|sent| sent.parse::<Value>().ok()).unwrap_or_default();
        let args = json!([sent]);
        let text = match sent {
            Value::String(text) => text,
            Value::Object(_) if is_flow => String::new(),
            _ => return Err(no_text()),
        };
        Ok(Self { text, args, metadata: metadata.map_or_else(|| Ok(RawObject::new()), object)? })
    }

    /// Refuses an input that is no text.
    ///
    /// # Errors
    /// 400.
    pub(crate) fn check_text(&self) -> Result<(), Failure> {
        if self.args[0].is_string() { Ok(()) } else { Err(no_text()) }
    }
}

fn no_text() -> Failure {
    OjsError::invalid_request("input", "must be there and be a text").into()
}

fn object(metadata: RawJson) -> Result<RawObject, Failure> {
    metadata.parse().map_err(|_| OjsError::invalid_request("metadata", "must be an object").into())
}

/// Refuses a body with another media type than JSON.
///
/// # Errors
/// 415.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let kind = media_type(kind.to_str().unwrap_or_default());
    if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) {
        return Ok(());
    }
    let hint = "Send `Content-Type: application/json`.";
    Err(OjsError::new(415, "unsupported_media_type", "The input must be JSON.", hint).into())
}

/// Refuses a client that accepts none of these media types.
///
/// # Errors
/// 406.
pub(crate) fn check_accepted(headers: &HeaderMap, offered: &[&str]) -> Result<(), Failure> {
    let mut requested = headers.get_all(ACCEPT).iter().peekable();
    if requested.peek().is_none() {
        return Ok(());
    }
    let takes = |range: &str| {
        let refused = range.split(';').skip(1).any(|parameter| {
            parameter.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
        });
        let range = media_type(range);
        let kind = range.strip_suffix("/*");
        !refused
            && (range == "*/*"
                || offered.iter().any(|offer| {
                    *offer == range || kind.is_some_and(|kind| offer.split('/').next() == Some(kind))
                }))
    };
    if requested.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(takes) {
        return Ok(());
    }
    let message = format!("The answer is {}, and the request takes none of that.", offered.join(" or "));
    Err(OjsError::new(406, "not_acceptable", message, "Send a fitting Accept header, or none.").into())
}

fn media_type(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
