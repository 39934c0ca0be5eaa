//! `GET /health` and `GET /ojs/v1/health`: the health of the server and its store (OJS HTTP binding §4.2).

use crate::api::Shared;
use crate::probes;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

/// The health of the server and its store.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// ok or unhealthy.
    #[schema(example = "ok")]
    status: &'static str,
    version: &'static str,
    uptime_seconds: i64,
    backend: BackendHealth,
}

/// The health of the store.
#[derive(Serialize, ToSchema)]
pub(crate) struct BackendHealth {
    /// sqlite or postgres.
    #[serde(rename = "type")]
    #[schema(example = "sqlite")]
    kind: String,
    /// ok or unhealthy.
    #[schema(example = "ok")]
    status: &'static str,
    /// How long the store took to answer.
    latency_ms: u64,
}

/// The health of the server and its store.
#[utoipa::path(
    get, path = "/health", tag = "server",
    security(()),
    responses(
        (status = 200, description = "Both are.", body = Health),
        (status = 503, description = "The store does not answer.", body = Health),
    ),
)]
pub(crate) async fn health(State(app): State<Shared>) -> Response {
    let uptime_seconds = app.api.clock.now().since(app.started_at) / 1000;
    let health = |answers, latency_ms| {
        let status = if answers { "ok" } else { "unhealthy" };
        let backend = BackendHealth { kind: app.api.backend.clone(), status, latency_ms };
        Health { status, version: env!("CARGO_PKG_VERSION"), uptime_seconds, backend }
    };
    probes::about_the_store(&app.api.store.views, health).await
}
