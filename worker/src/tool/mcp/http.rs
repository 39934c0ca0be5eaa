//! Streamable HTTP of MCP servers: one POST per message.
//!
//! The transport's own client reads UTF-8 alone, and knows a lost session by the status 404 alone. This one reads a message
//! in the charset of its body, and knows the other answers by which servers say that they know no such session.

use super::message;
use crate::tool::body_text::{self, BodyText};
use crate::tool::lines::lines;
use crate::tool::outbound::{self, BodyError};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_util::bytes::Bytes;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The most bytes of a failed answer that are read.
const MOST_OF_FAILURE: usize = 64 * 1024;

/// The most bytes of a stream in all.
const MOST_BYTES: usize = 1 << 30;

/// The words of servers about a session that they do not know.
const UNKNOWN: [&str; 10] = [
    "no valid",
    "not valid",
    "invalid",
    "unknown",
    "not found",
    "not find",
    "not exist",
    "no such",
    "expired",
    "terminated",
];

type HttpError = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client that reads the answers of many kinds of servers.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    pub(super) client: Client,
    /// The most bytes of a message.
    pub(super) longest: usize,
}

impl HttpClient {
    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut request = self.client.post(uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        request = request.headers(allowed(headers)?);
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session);
        }
        let response = request.json(message).send().await?;
        let status = response.status();
        if let Some(challenged) = challenged(&response) {
            return Err(challenged);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let given = response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok());
        let given = given.map(str::to_owned);
        let content_type = outbound::content_type(&response);
        let media_type = outbound::essence(&content_type);
        if !status.is_success() {
            return failed(response, message, session.is_some())
                .await
                .map(|error| StreamableHttpPostResponse::Json(error, given));
        }
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if media_type == EVENTS {
            return Ok(StreamableHttpPostResponse::Sse(events(response, self.longest), given));
        }
        if media_type != JSON {
            let is_empty = !is_request && response.content_length() == Some(0);
            let unexpected =
                || StreamableHttpError::UnexpectedContentType(Some(content_type).filter(|of| !of.is_empty()));
            return if is_empty { Ok(StreamableHttpPostResponse::Accepted) } else { Err(unexpected()) };
        }
        let body = outbound::read_body(response, self.longest).await.map_err(unreadable)?;
        let text = message::readable(&content_type, body);
        match serde_json::from_str::<ServerJsonRpcMessage>(&text) {
            Ok(read) => Ok(StreamableHttpPostResponse::Json(read, given)),
            // Nothing waits for the answer to a notification.
            Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => {
                let begin = outbound::excerpt(&text, 100);
                let problem = format!("its message cannot be read: {error}: {begin}");
                Err(StreamableHttpError::UnexpectedServerResponse(problem.into()))
            }
        }
    }
}

/// Returns the headers of the configuration, without those that belong to the transport.
fn allowed(headers: Headers) -> Result<HeaderMap, HttpError> {
    let reserved = [ACCEPT.as_str(), "mcp-session-id", "last-event-id"];
    match headers.keys().find(|name| reserved.contains(&name.as_str())) {
        Some(name) => Err(StreamableHttpError::ReservedHeaderConflict(name.to_string())),
        None => Ok(headers.into_iter().collect()),
    }
}

/// Returns the error of an answer that demands another identity.
fn challenged(response: &Response) -> Option<HttpError> {
    let challenge = response.headers().get(WWW_AUTHENTICATE)?.to_str().unwrap_or_default().to_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        StatusCode::FORBIDDEN => {
            Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        _ => None,
    }
}

/// Reads a failed answer; returns the error message of the protocol in it.
///
/// # Errors
/// The failure, if it is no such message, or says that the session is unknown.
async fn failed(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<ServerJsonRpcMessage, HttpError> {
    let status = response.status();
    if status == StatusCode::NOT_FOUND && has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let content_type = outbound::content_type(&response);
    let is_json = outbound::essence(&content_type) == JSON;
    let wait = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()).map(str::to_owned);
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS;
    let busy = || HttpStatusError::new(status.as_u16(), wait.clone()).into();
    if is_busy || (status.is_server_error() && !is_json) {
        return Err(busy());
    }
    let (body, _) = outbound::read_start(response, MOST_OF_FAILURE).await.map_err(unreadable)?;
    let BodyText { text, .. } = body_text::decode(&content_type, body);
    if is_unknown_session(status, &text) && !is_handshake(message) && !answers(&text, message) {
        return Err(StreamableHttpError::SessionExpired);
    }
    let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    match serde_json::from_str(&text) {
        Ok(error @ ServerJsonRpcMessage::Error(_)) if is_json && !is_refused => Ok(error),
        _ if status.is_server_error() => Err(busy()),
        _ => Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {text}").into())),
    }
}

/// Returns true if a failed answer says that the server does not know the session. It has not processed the request then.
fn is_unknown_session(status: StatusCode, text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let is_unknown = text.contains("session") && UNKNOWN.iter().any(|words| text.contains(words));
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::GONE)
        && (is_unknown || text.contains("server not initialized"))
}

/// Returns true if a text is the answer to this request, which the server has processed then.
fn answers(text: &str, message: &ClientJsonRpcMessage) -> bool {
    let id = serde_json::to_value(message).unwrap_or_default()["id"].take();
    !id.is_null() && serde_json::from_str::<Value>(text).is_ok_and(|answer| answer["id"] == id)
}

fn is_handshake(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_)))
}

/// Returns the events of an answer, each as the parser takes it.
fn events(response: Response, longest: usize) -> Events {
    let lines = lines(response, longest, MOST_BYTES).map_ok(Bytes::from);
    SseStream::from_bytes_stream(Box::pin(lines)).map_ok(with_readable_data).boxed()
}

fn with_readable_data(event: Sse) -> Sse {
    Sse { data: event.data.map(|data| message::readable("", data.into_bytes())), ..event }
}

fn unreadable(error: BodyError) -> HttpError {
    match error {
        BodyError::TooLarge(max_size) => StreamableHttpError::ResponseBodyTooLarge { max_size },
        BodyError::Lost(why) => StreamableHttpError::UnexpectedServerResponse(why.into()),
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.post(&uri, &message, session.as_deref(), headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        let longest = self.longest;
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last, token, headers, longest)
            .await?;
        Ok(events.map_ok(with_readable_data).boxed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_session_is_known_by_its_words() {
        for text in [
            "Bad Request: No valid session ID provided",
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
            "Unknown session",
            "Session 17 could not be found: it does not exist",
            "Bad Request: Server not initialized",
        ] {
            assert!(is_unknown_session(StatusCode::BAD_REQUEST, text), "{text}");
            assert!(!is_unknown_session(StatusCode::INTERNAL_SERVER_ERROR, text), "{text}");
        }
        assert!(!is_unknown_session(StatusCode::BAD_REQUEST, "the argument `session` is missing"));
    }
}
