//! One connection to an MCP server: the handshake, listing, calling.

use super::child::Process;
use super::config::McpConfig;
use super::http::HttpClient;
use super::listed::ListedTools;
use super::message::readable_lines;
use super::reply::{self, NoReply, ToolReply};
use super::sse::{self, Carriers};
use crate::tool::header::resolve_headers;
use crate::tool::outbound::{self, excerpt};
use crate::tool::program::Programs;
use reqwest::Client;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    Implementation, ListToolsRequest, MetaObject, PaginatedRequestParams, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RoleClient, RunningService,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{
    HttpStatusError, StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::{ClientHandler, ServiceError, ServiceExt as _};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use turnstone_domain::CallId;
use turnstone_domain::engagement::User;
use turnstone_telemetry::propagation;

/// The key of a call's id in the `_meta` of `tools/call`: the same id twice is the same call twice.
pub const IDEMPOTENCY_KEY: &str = "idempotencyKey";
/// The key of the end user there, as `{"id", "email"}`, when the call is made in that user's name (OAS-25).
pub const USER: &str = "turnstoneUser";

/// The most requests that one connection carries at once.
pub(super) const CALLS_AT_ONCE: usize = 32;

/// The most characters of a server's error message in ours.
const EXCERPT: usize = 300;

/// The most attempts to resume a broken event stream within one connection.
const STREAM_RETRIES: usize = 3;

/// A connection on which the handshake is done.
#[derive(Debug)]
pub(super) struct Connection {
    service: RunningService<RoleClient, Listener>,
    changed: Arc<AtomicBool>,
    process: Option<Process>,
    /// The tasks that carry the messages of the older HTTP transport.
    _carriers: Option<Carriers>,
    /// The text that errors must not repeat: the URL with its query.
    url: Option<String>,
}

/// The way in which a request on a connection failed.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The server could not be reached: the request never left.
    Unreached(String),
    /// The connection is unusable, and the request may have left on it.
    Lost(String),
    /// The request may have left, and the response is no answer; the connection is usable.
    Unclear(String),
    /// The server rejected the request without processing it.
    TurnedAway(String),
    /// The same, because it is busy, with its delay in milliseconds if it sent one.
    Busy(String, Option<u64>),
    /// The server refused the request, or listed unusable tools.
    Refused(String),
}

impl RequestError {
    /// Returns the reason as a sentence.
    pub(super) fn why(&self) -> &str {
        let (Self::Unreached(why)
        | Self::Lost(why)
        | Self::Unclear(why)
        | Self::TurnedAway(why)
        | Self::Busy(why, _)
        | Self::Refused(why)) = self;
        why
    }
}

/// The handler of messages from a server. It accepts the notice that the tools have changed, and declines all
/// requests.
#[derive(Clone, Debug)]
struct Listener {
    changed: Arc<AtomicBool>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("turnstone", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Release);
    }
}

/// A call whose server is notified, when this is dropped, that the call is cancelled.
struct AbandonedCall {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for AbandonedCall {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let reason = "the caller does not wait any longer".to_owned();
        let (peer, cancelled) = (self.peer.clone(), CancelledNotificationParam::new(Some(id), Some(reason)));
        // It cannot be awaited here; the server ends the call by itself without it.
        runtime.spawn(async move { peer.notify_cancelled(cancelled).await });
    }
}

impl Connection {
    /// Starts the server or connects to it, and performs the handshake.
    ///
    /// # Errors
    /// A sentence with the reason why there is no connection, without secrets.
    pub(super) async fn open(
        config: &McpConfig,
        client: &Client,
        programs: &Programs,
    ) -> Result<Self, String> {
        // The first listing is always due.
        let changed = Arc::new(AtomicBool::new(true));
        let listener = Listener { changed: Arc::clone(&changed) };
        // Structured and textual output repeat each other, and JSON may escape every character.
        let longest = config.max_response_bytes.saturating_mul(4).saturating_add(1 << 20);
        match &config.url {
            Some(url) if config.sse => {
                let headers = resolve_headers(&config.headers)?;
                let (carriers, lines, writer) = sse::open(url, &headers, client, longest).await?;
                let lines = readable_lines(lines);
                let transport = AsyncRwTransport::new_client(lines, writer).with_max_line_length(usize::MAX);
                let service =
                    Box::pin(listener.serve(transport)).await.map_err(|error| refused(&error, Some(url)))?;
                let url = Some(url.clone());
                Ok(Self { service, changed, process: None, _carriers: Some(carriers), url })
            }
            Some(url) => {
                let headers = resolve_headers(&config.headers)?;
                let mut settings = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
                    .max_sse_event_size(longest)
                    .max_concurrent_requests(CALLS_AT_ONCE);
                let mut retries = FixedInterval::default();
                retries.max_times = Some(STREAM_RETRIES);
                settings.retry_config = Arc::new(retries);
                let client = HttpClient { client: client.clone(), longest };
                let transport = StreamableHttpClientTransport::with_client(client, settings);
                let service =
                    Box::pin(listener.serve(transport)).await.map_err(|error| refused(&error, Some(url)))?;
                let url = Some(url.clone());
                Ok(Self { service, changed, process: None, _carriers: None, url })
            }
            None => {
                let (process, lines, stdin) = Process::start(config, programs, longest)?;
                // Our limit ends the connection; the transport's would drop the answer silently.
                let lines = readable_lines(lines);
                let transport = AsyncRwTransport::new_client(lines, stdin).with_max_line_length(usize::MAX);
                match Box::pin(listener.serve(transport)).await {
                    Ok(service) => {
                        Ok(Self { service, changed, process: Some(process), _carriers: None, url: None })
                    }
                    Err(error) => Err(format!("{}: {}", process.epitaph().await, refused(&error, None))),
                }
            }
        }
    }

    /// Returns true if requests may still be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// Returns the reason why the connection takes no more requests.
    pub(super) async fn epitaph(&self) -> String {
        match &self.process {
            Some(process) => process.epitaph().await,
            None => "the connection was closed".to_owned(),
        }
    }

    /// Returns true if the server's tools may have changed since the last call of this function.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Returns the server's own name and version.
    pub(super) fn server_info(&self) -> Option<(String, String)> {
        let info = self.service.peer().peer_info()?;
        info.server_info.as_ref().map(|server| (server.name.clone(), server.version.clone()))
    }

    /// Asks for all tools, page by page (RS-12). What of the list can be read is returned, and the rest is named.
    ///
    /// # Errors
    /// [`RequestError`], if there is no first page.
    pub(super) async fn list(&self) -> Result<ListedTools, RequestError> {
        let mut listed = ListedTools::default();
        let mut cursor = None;
        loop {
            let mut page = PaginatedRequestParams::default();
            page.cursor = cursor;
            let request = ListToolsRequest { params: Some(page), ..ListToolsRequest::default() };
            let answer = match self.service.peer().send_request(request.into()).await {
                Ok(answer) => Ok(answer),
                Err(error) => match self.failed(&error).await {
                    RequestError::Refused(why) => Err(why),
                    failed => return Err(failed),
                },
            };
            cursor = match answer.and_then(|answer| listed.take(answer)) {
                Ok(Some(next)) => Some(next),
                Ok(None) => return Ok(listed),
                Err(why) if listed.is_begun() => return Ok(listed.broken_off(&why)),
                Err(why) => return Err(RequestError::Refused(why)),
            };
        }
    }

    /// Calls a tool. Dropping the future notifies the server that the call is cancelled.
    ///
    /// # Errors
    /// [`RequestError`].
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        (call_id, user): (&CallId, Option<&User>),
    ) -> Result<Result<ToolReply, NoReply>, RequestError> {
        let mut meta = MetaObject::new();
        if let Some(user) = user {
            meta.0.insert(USER.to_owned(), serde_json::json!(user));
        }
        meta.0.insert(IDEMPOTENCY_KEY.to_owned(), call_id.as_str().into());
        // MCP reserves the W3C keys for the trace context.
        meta.0.extend(propagation::outgoing().into_iter().map(|(name, value)| (name, value.into())));
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        params.meta = Some(RequestMetaObject(meta));
        match self.send_call(params).await {
            Ok(answer) => Ok(reply::read(answer)),
            Err(error) => Err(self.failed(&error).await),
        }
    }

    /// Sends a call. Unlike the client of the protocol, it also returns results that its types do not have.
    async fn send_call(&self, params: CallToolRequestParams) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let peer = self.service.peer();
        let sent = peer.send_cancellable_request(CallToolRequest::new(params).into(), options).await?;
        let mut abandoned = AbandonedCall { peer: peer.clone(), id: Some(sent.id.clone()) };
        let answer = sent.await_response().await;
        abandoned.id = None;
        answer
    }

    /// Closes the connection in an orderly way.
    pub(super) async fn close(&self) {
        self.service.cancellation_token().cancel();
        if let Some(process) = &self.process {
            process.leave().await;
        }
    }

    async fn failed(&self, error: &ServiceError) -> RequestError {
        match error {
            ServiceError::McpError(error) => {
                RequestError::Refused(format!("{} (code {})", excerpt(&error.message, EXCERPT), error.code.0))
            }
            ServiceError::TransportClosed => RequestError::Lost(self.epitaph().await),
            ServiceError::TransportSend(_) if self.process.is_some() => {
                RequestError::Lost(self.epitaph().await)
            }
            // Requests over HTTP are independent: one bad answer ends that request alone.
            ServiceError::TransportSend(inner) if cannot_connect(&*inner.error) => {
                RequestError::Unreached(not_sent(&*inner.error, self.url.as_deref()))
            }
            ServiceError::TransportSend(inner) if is_turned_away(&*inner.error) => {
                RequestError::TurnedAway(not_sent(&*inner.error, self.url.as_deref()))
            }
            ServiceError::TransportSend(inner) if let Some(busy) = busy(&*inner.error) => {
                let wait_ms = busy.retry_after.as_deref().and_then(outbound::wait_ms);
                RequestError::Busy(not_sent(&*inner.error, self.url.as_deref()), wait_ms)
            }
            ServiceError::TransportSend(inner) => {
                RequestError::Unclear(not_sent(&*inner.error, self.url.as_deref()))
            }
            error => RequestError::Unclear(redacted(&error.to_string(), self.url.as_deref())),
        }
    }
}

fn cannot_connect(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(error, Some(StreamableHttpError::Client(error)) if error.is_connect())
}

/// Returns true if the server rejected the request before processing it: the client is unknown or not
/// permitted.
fn is_turned_away(error: &(dyn std::error::Error + 'static)) -> bool {
    type Error = StreamableHttpError<reqwest::Error>;
    matches!(
        error.downcast_ref::<Error>(),
        Some(Error::AuthRequired(_) | Error::InsufficientScope(_) | Error::SessionExpired)
    )
}

/// Returns the status of a server that takes no request now: 429, or 503 with `Retry-After`.
fn busy<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e HttpStatusError> {
    let Some(StreamableHttpError::HttpStatus(status)) =
        error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    else {
        return None;
    };
    (status.status == 429 || (status.status == 503 && status.retry_after.is_some())).then_some(status)
}

/// Returns the reason why the handshake failed.
fn refused(error: &ClientInitializeError, url: Option<&str>) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => not_sent(&*error.error, url),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused the handshake: {}", excerpt(&error.message, EXCERPT))
        }
        ClientInitializeError::ConnectionClosed(_) => "the handshake was not answered".to_owned(),
        other => redacted(&other.to_string(), url),
    }
}

/// Returns the reason why a request was not answered.
fn not_sent(error: &(dyn std::error::Error + 'static), url: Option<&str>) -> String {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => outbound::describe(error),
        _ => redacted(&error.to_string(), url),
    }
}

/// Returns a short sentence without the URL, which may hold a secret.
fn redacted(text: &str, url: Option<&str>) -> String {
    excerpt(&url.map_or(text.to_owned(), |url| text.replace(url, "its URL")), EXCERPT)
}

/// Returns the delay before a server is tried again after this many failures in a row.
pub(super) fn rest(failures: usize) -> Duration {
    use backon::BackoffBuilder as _;
    let longest = Duration::from_secs(60);
    let mut rests = backon::ExponentialBuilder::default()
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(longest)
        .without_max_times()
        .build();
    failures.checked_sub(1).map_or(Duration::ZERO, |before| rests.nth(before.min(16)).unwrap_or(longest))
}
