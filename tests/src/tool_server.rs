//! A tool for tests: real HTTP, a log of every call with its idempotency key.

use crate::model_server::Gate;
use crate::wait;
use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// One call that reached the server.
#[derive(Clone, PartialEq, Debug)]
pub struct Called {
    /// The tool's name: the last segment of the path.
    pub tool: String,
    /// The `Idempotency-Key`.
    pub key: String,
    /// The arguments.
    pub input: Value,
    /// All headers, by their names in lower case.
    pub headers: HashMap<String, String>,
}

/// An answer that is no success.
#[derive(Clone, Debug)]
pub struct Failure {
    status: StatusCode,
    retry_after: Option<&'static str>,
    body: Option<Value>,
}

impl From<(StatusCode, Option<&'static str>)> for Failure {
    /// Returns a status with a `Retry-After`, and an empty body.
    fn from((status, retry_after): (StatusCode, Option<&'static str>)) -> Self {
        Self { status, retry_after, body: None }
    }
}

impl From<(StatusCode, Value)> for Failure {
    /// Returns a status with a JSON body.
    fn from((status, body): (StatusCode, Value)) -> Self {
        Self { status, retry_after: None, body: Some(body) }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = match self.body {
            Some(body) => (self.status, Json(body)).into_response(),
            None => self.status.into_response(),
        };
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(wait));
        }
        response
    }
}

struct Shared {
    log: Mutex<Vec<Called>>,
    headers: Mutex<Vec<HeaderMap>>,
    /// The number of calls of each tool that still fail, and the failure.
    failing: Mutex<HashMap<String, (usize, Failure)>>,
    gate: Mutex<Option<Gate>>,
    under_way: AtomicUsize,
    most: AtomicUsize,
    count: watch::Sender<usize>,
}

/// The server. It stops when it is dropped. A tool called `hang` never answers, one called `broken` answers
/// 500, all others echo their input.
pub struct ToolServer {
    /// The base URL; a tool is at `{url}/{name}`.
    pub url: String,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

impl ToolServer {
    /// Starts the server.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared {
            log: Mutex::default(),
            headers: Mutex::default(),
            failing: Mutex::default(),
            gate: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            count: watch::channel(0).0,
        });
        let router = Router::new().route("/{tool}", post(call)).with_state(Arc::clone(&shared));
        let (url, serving) = crate::http::serve(router).await;
        Self { url, shared, _serving: serving }
    }

    /// Returns every call so far.
    pub fn calls(&self) -> Vec<Called> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the headers of every call so far.
    pub fn headers(&self) -> Vec<HeaderMap> {
        self.shared.headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of calls of a tool so far.
    pub fn calls_of(&self, tool: &str) -> usize {
        self.calls().iter().filter(|call| call.tool == tool).count()
    }

    /// Answers the next `times` calls of a tool with 500.
    pub fn fail(&self, tool: &str, times: usize) {
        self.fail_with(tool, times, (StatusCode::INTERNAL_SERVER_ERROR, None));
    }

    /// Answers the next `times` calls of a tool with this failure.
    pub fn fail_with(&self, tool: &str, times: usize, failure: impl Into<Failure>) {
        let mut failing = self.shared.failing.lock().unwrap_or_else(PoisonError::into_inner);
        failing.insert(tool.to_owned(), (times, failure.into()));
    }

    /// Holds every answer until the gate is open.
    pub fn hold(&self, gate: &Gate) {
        *self.shared.gate.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate.clone());
    }

    /// Returns the most calls that ran at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.most.load(Ordering::SeqCst)
    }

    /// Waits until the server has seen `count` calls.
    ///
    /// # Panics
    /// When it has seen fewer after [`wait::PATIENCE`].
    pub async fn seen(&self, count: usize) {
        let mut counter = self.shared.count.subscribe();
        let seen = wait::ends(wait::PATIENCE, counter.wait_for(|seen| *seen >= count)).await.is_some();
        assert!(seen, "{} of {count} calls in {:?}: {:#?}", self.calls().len(), wait::PATIENCE, self.calls());
    }
}

async fn call(
    State(shared): State<Arc<Shared>>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    Json(input): Json<Value>,
) -> Response {
    shared.headers.lock().unwrap_or_else(PoisonError::into_inner).push(headers.clone());
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    {
        let mut log = shared.log.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let headers = headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        log.push(Called { tool: tool.clone(), key, input: input.clone(), headers });
        shared.count.send_replace(log.len());
    }
    let under_way = shared.under_way.fetch_add(1, Ordering::SeqCst) + 1;
    shared.most.fetch_max(under_way, Ordering::SeqCst);
    let gate = shared.gate.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(gate) = gate {
        gate.passed().await;
    }
    let failure = {
        let mut failing = shared.failing.lock().unwrap_or_else(PoisonError::into_inner);
        failing.get_mut(&tool).filter(|(left, _)| *left > 0).map(|(left, failure)| {
            *left -= 1;
            failure.clone()
        })
    };
    shared.under_way.fetch_sub(1, Ordering::SeqCst);
    match (failure, tool.as_str()) {
        (Some(failure), _) => failure.into_response(),
        (None, "hang") => std::future::pending().await,
        (None, "broken") => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        (None, _) => Json(json!({"tool": tool, "echo": input})).into_response(),
    }
}
