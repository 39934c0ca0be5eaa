//! One MCP server of a worker: connected on demand, reconnected after its end, and paused while it keeps
//! failing.

use super::catalogue::Catalogue;
use super::config::McpConfig;
use super::connection::{CALLS_AT_ONCE, Connection, RequestError, rest};
use super::pin;
use super::reply::{NoReply, ToolReply};
use crate::tool::{Programs, ToolError};
use async_recursion::async_recursion as boxed;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::Client;
use serde_json::{Map, Value};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::engagement::User;
use turnstone_domain::{CallId, Clock, Timestamp};

/// Tools are listed again after this time, in milliseconds, even without a notice that they changed.
const LISTED_FOR_MS: i64 = 300_000;

/// The longest that a turn waits for a list while an earlier one is known. The listing continues meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// A server and the one connection that all turns of this worker share.
pub struct McpServer {
    name: String,
    config: McpConfig,
    client: Client,
    programs: Programs,
    clock: Arc<dyn Clock>,
    // Separate from the connection, so that calls proceed while a listing is awaited. It is locked first.
    listing: Mutex<Listing>,
    // The last list, also while the next one is awaited.
    known: std::sync::Mutex<Option<Arc<Catalogue>>>,
    state: Mutex<State>,
    calls: Semaphore,
}

#[derive(Default)]
struct Listing {
    catalogue: Option<Arc<Catalogue>>,
    at: Option<Timestamp>,
    /// The last offer of a pinned server that matched its pin.
    accepted: Option<Arc<Catalogue>>,
}

/// The reason why there is no list.
#[derive(Clone)]
struct Unlisted {
    why: String,
    /// True if the server has only not answered in time: an earlier list may still hold.
    is_late: bool,
}

impl Unlisted {
    fn failed(why: String) -> Self {
        Self { why, is_late: false }
    }

    fn late(why: String) -> Self {
        Self { why, is_late: true }
    }
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The number of consecutive connections that failed or ended before they served a call.
    failures: usize,
    /// The end of the current pause, and its reason.
    resting: Option<(Timestamp, Unlisted)>,
}

impl McpServer {
    /// Returns a server that is not connected yet; if it is a program, it starts as `programs` says.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(
        name: &str,
        config: McpConfig,
        client: Client,
        programs: Programs,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, String> {
        config.check()?;
        Ok(Arc::new(Self {
            name: name.to_owned(),
            config,
            client,
            programs,
            clock,
            listing: Mutex::default(),
            known: std::sync::Mutex::default(),
            state: Mutex::default(),
            calls: Semaphore::new(CALLS_AT_ONCE),
        }))
    }

    /// Returns its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its configuration.
    #[must_use]
    pub fn config(&self) -> &McpConfig {
        &self.config
    }

    /// Returns its offer, from memory or by `tools/list` (RS-12). Connects to the server if necessary. A server that takes long
    /// to answer is offered as it was last known, if it was.
    ///
    /// # Errors
    /// A sentence with the reason why it cannot be asked now; in bounded time.
    pub fn catalogue(self: &Arc<Self>) -> BoxFuture<'_, Result<Arc<Catalogue>, String>> {
        self.offer().boxed()
    }

    async fn offer(self: &Arc<Self>) -> Result<Arc<Catalogue>, String> {
        let Some(known) = self.known() else {
            return self.listed().await.map_err(|unlisted| unlisted.why);
        };
        // A task of its own, so that a slow server gets its time although no turn waits for it.
        let server = Arc::clone(self);
        let mut listing = tokio::spawn(async move { server.listed().await });
        match tokio::time::timeout(PATIENCE, &mut listing).await {
            Ok(Ok(Err(unlisted))) if !unlisted.is_late => Err(unlisted.why),
            Ok(Ok(Ok(listed))) => Ok(listed),
            Ok(_) | Err(_) => {
                tracing::info!(server = self.name, "an MCP server is slow; its last known tools are used");
                Ok(known)
            }
        }
    }

    fn known(&self) -> Option<Arc<Catalogue>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn listed(self: &Arc<Self>) -> Result<Arc<Catalogue>, Unlisted> {
        let mut listing = self.listing.lock().await;
        let connection = self.connected().await?;
        let now = self.clock.now();
        let fresh = listing.at.is_some_and(|at| now.since(at) < LISTED_FOR_MS);
        if !connection.take_changed()
            && fresh
            && let Some(catalogue) = &listing.catalogue
        {
            return Ok(Arc::clone(catalogue));
        }
        let listed = match tokio::time::timeout(self.config.connect_timeout(), connection.list()).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => {
                let why = format!("its tools cannot be listed: {}", error.why());
                return Err(self.useless(Unlisted::failed(why)).await);
            }
            Err(_) => {
                let ms = self.config.connect_timeout_ms;
                let why = format!("it did not list its tools within {ms} ms");
                return Err(self.useless(Unlisted::late(why)).await);
            }
        };
        let server = Arc::clone(self);
        let reading = turnstone_blocking::run(move || Catalogue::of(&server, &server.config, listed));
        let Ok(offered) = reading.await else {
            let why = "its tools cannot be read".to_owned();
            return Err(self.useless(Unlisted::failed(why)).await);
        };
        if let Some((part, why)) = offered.unread().first() {
            let parts = offered.unread().len();
            tracing::warn!(
                server = self.name,
                parts,
                part,
                why,
                "parts of an MCP server's list cannot be read"
            );
        }
        let (held, in_order) = pin::hold(&self.name, &self.config.pin, listing.accepted.as_ref(), offered);
        let held = Arc::new(held);
        if in_order {
            listing.accepted = Some(Arc::clone(&held));
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&held));
        listing.catalogue = Some(Arc::clone(&held));
        listing.at = Some(now);
        Ok(held)
    }

    /// Returns the server's own name and version, when it is connected.
    #[boxed]
    pub async fn server_info(&self) -> Option<(String, String)> {
        self.state.lock().await.connection.as_ref().and_then(|connection| connection.server_info())
    }

    /// Calls a tool. Dropping the future cancels the call.
    ///
    /// # Errors
    /// A sentence for the model. [`ToolError::Answered`] when the server answered an error,
    /// [`ToolError::Unreached`] when the call did not arrive, [`ToolError::Lost`] when the call may have left
    /// and no answer came.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        whose: (&CallId, Option<&User>),
    ) -> Result<Result<ToolReply, NoReply>, ToolError> {
        let sentence = |problem: String| format!("tool {}.{tool}: {problem}", self.name);
        let unreached = |problem: String| ToolError::Unreached(sentence(problem));
        let _place =
            self.calls.acquire().await.map_err(|_| unreached("the worker is stopping".to_owned()))?;
        let connection = self
            .connected()
            .await
            .map_err(|unlisted| unreached(format!("its server is not available: {}", unlisted.why)))?;
        match connection.call(tool, arguments, whose).await {
            Ok(response) => {
                self.answered(&mut *self.state.lock().await);
                Ok(response)
            }
            Err(RequestError::Refused(why)) => Err(ToolError::Answered(sentence(why))),
            Err(RequestError::TurnedAway(why)) => Err(unreached(why)),
            Err(RequestError::Busy(why, wait_ms)) => Err(ToolError::Busy(sentence(why), wait_ms)),
            Err(RequestError::Unclear(why)) => Err(ToolError::Lost(sentence(why))),
            Err(RequestError::Unreached(why)) => {
                self.lost(&connection, &why).await;
                Err(unreached(format!("its server is not available: {why}")))
            }
            Err(RequestError::Lost(why)) => {
                self.lost(&connection, &why).await;
                Err(ToolError::Lost(sentence(format!("the connection to its server was lost: {why}"))))
            }
        }
    }

    /// Closes the connection in an orderly way; the next call or listing makes a new one.
    #[boxed]
    pub async fn close(&self) {
        let connection = self.state.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    async fn connected(&self) -> Result<Arc<Connection>, Unlisted> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            if connection.is_open() {
                return Ok(Arc::clone(connection));
            }
            let why = connection.epitaph().await;
            self.died(&mut state, &why);
        }
        if let Some((until, Unlisted { why, is_late })) = &state.resting
            && self.clock.now() < *until
        {
            let why = format!("{why}; it is tried again after {until}");
            return Err(Unlisted { why, is_late: *is_late });
        }
        // A connection keeps the span in which it was made. A separate task has none, so that the span of the
        // claim that needed it first ends before the connection does.
        let (config, client, programs) = (self.config.clone(), self.client.clone(), self.programs.clone());
        let opening = tokio::spawn(async move { Connection::open(&config, &client, &programs).await });
        let opened =
            tokio::time::timeout(self.config.connect_timeout(), AbortOnDropHandle::new(opening)).await;
        let opened = match opened {
            Ok(Ok(opened)) => opened.map_err(Unlisted::failed),
            Ok(Err(error)) => Err(Unlisted::failed(format!("the connection could not be made: {error}"))),
            Err(_) => {
                let ms = self.config.connect_timeout_ms;
                Err(Unlisted::late(format!("it did not shake hands within {ms} ms")))
            }
        };
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                state.resting = None;
                Ok(connection)
            }
            Err(unlisted) => Err(self.failed(&mut state, unlisted)),
        }
    }

    /// Discards an unusable connection, unless a new one has replaced it already.
    async fn lost(&self, connection: &Arc<Connection>, why: &str) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            self.died(&mut state, why);
        }
    }

    async fn useless(&self, unlisted: Unlisted) -> Unlisted {
        let mut state = self.state.lock().await;
        self.failed(&mut state, unlisted)
    }

    /// Handles the end of a connection that worked: the first time it is made again at once.
    fn died(&self, state: &mut State, why: &str) {
        if state.failures == 0 {
            tracing::warn!(server = self.name, why, "the connection to an MCP server was lost");
        }
        self.leave_alone(state, Unlisted::failed(why.to_owned()), rest(state.failures));
    }

    /// Handles a connection that was never made, or on which listing the tools failed.
    fn failed(&self, state: &mut State, unlisted: Unlisted) -> Unlisted {
        if state.failures == 0 {
            tracing::warn!(server = self.name, why = unlisted.why, "an MCP server is not available");
        }
        self.leave_alone(state, unlisted.clone(), rest(state.failures + 1));
        unlisted
    }

    /// Handles an answer: the failures before it are over.
    fn answered(&self, state: &mut State) {
        if std::mem::take(&mut state.failures) > 0 {
            tracing::info!(server = self.name, "an MCP server answers again");
        }
    }

    fn leave_alone(&self, state: &mut State, why: Unlisted, rest: Duration) {
        let rest_ms = i64::try_from(rest.as_millis()).unwrap_or(i64::MAX);
        state.connection = None;
        state.failures += 1;
        state.resting = Some((self.clock.now().plus_ms(rest_ms), why));
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("name", &self.name).finish_non_exhaustive()
    }
}
