//! A tool for tests: real HTTP, a log of every call with its idempotency key.

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
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
}

struct Shared {
    log: Mutex<Vec<Called>>,
    count: watch::Sender<usize>,
}

/// The server. It stops when it is dropped. A tool called `hang` never answers, one called `broken` answers 500, all
/// others echo their input.
pub struct ToolServer {
    /// The base URL; a tool is at `{url}/{name}`.
    pub url: String,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

impl ToolServer {
    /// Starts the server.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared { log: Mutex::default(), count: watch::channel(0).0 });
        let router = Router::new().route("/{tool}", post(call)).with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving =
            tokio::spawn(async move { axum::serve(listener, router).await.expect("the tool server") });
        Self { url, shared, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Called> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the server has seen `count` calls.
    pub async fn seen(&self, count: usize) {
        let mut counter = self.shared.count.subscribe();
        counter.wait_for(|seen| *seen >= count).await.expect("the tool server lives");
    }
}

async fn call(
    State(shared): State<Arc<Shared>>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    Json(input): Json<Value>,
) -> Result<Json<Value>, axum::http::StatusCode> {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    {
        let mut log = shared.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(Called { tool: tool.clone(), key, input: input.clone() });
        shared.count.send_replace(log.len());
    }
    match tool.as_str() {
        "hang" => std::future::pending().await,
        "broken" => Err(axum::http::StatusCode::INTERNAL_SERVER_ERROR),
        _ => Ok(Json(json!({"tool": tool, "echo": input}))),
    }
}
