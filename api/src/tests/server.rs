//! A server to send requests to, without a network.

use crate::{Api, ApiOptions};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, Timestamp};
use turnstone_store::{JobFilter, Page, SqliteStore, Store};

/// A clock that a test moves; a negative time makes it panic.
pub(super) struct ManualClock(pub(super) AtomicI64);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let now = self.0.load(Ordering::Relaxed);
        assert!(now >= 0, "the clock is broken");
        Timestamp(now)
    }
}

pub(super) struct Server {
    pub(super) router: Router,
    pub(super) store: Store,
    pub(super) clock: Arc<ManualClock>,
    pub(super) shutdown: CancellationToken,
    _folder: TempDir,
}

pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(super) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::with(ApiOptions::default()).await
    }

    pub(super) async fn with(options: ApiOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ids = Arc::new(SystemIds);
        let store = SqliteStore::open(&folder.path().join("t.db"), ids.clone()).await.unwrap();
        let clock = Arc::new(ManualClock(AtomicI64::new(1_767_225_600_000)));
        let shutdown = CancellationToken::new();
        let find = ToolSpec {
            name: "find".into(),
            description: "Finds pages".into(),
            input_schema: serde_json::json!({"type": "object"}),
            idempotent: true,
        };
        let api = Api {
            store: store.clone(),
            clock: clock.clone(),
            ids,
            tools: vec![find],
            backend: "sqlite".into(),
            options,
            shutdown: shutdown.clone(),
        };
        Self { router: api.router().unwrap(), store, clock, shutdown, _folder: folder }
    }

    pub(super) async fn request(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Reply { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.into()).unwrap() }
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.request(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, body: impl Into<Body>) -> Reply {
        self.request(Request::post(path).body(body.into()).unwrap()).await
    }

    /// Enqueues a job and returns the answer.
    pub(super) async fn push(&self, job: &Value) -> Value {
        let reply = self.post("/ojs/v1/jobs", job.to_string()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        reply.json()
    }

    pub(super) async fn stored_jobs(&self) -> u64 {
        self.store.views.jobs(&JobFilter::default(), Page { limit: 1, offset: 0 }).await.unwrap().1
    }
}
