//! The endpoints of a process without an API: its probes and its metrics. A worker counts for itself, so each one is
//! scraped.

use crate::metrics;
use crate::probes;
use crate::serve::ServeLimits;
use async_recursion::async_recursion as boxed;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use turnstone_store::Views;

/// The limits of connections of probes and scrapers: few, and each short.
const PROBE_LIMITS: ServeLimits = ServeLimits {
    connections: 64,
    header: Duration::from_secs(10),
    body: Duration::from_secs(10),
    idle: Duration::from_secs(75),
    write: Duration::from_secs(30),
};

/// The process whose probes are served.
#[derive(Clone)]
pub struct Probed {
    /// The store that it needs.
    pub views: Views,
    /// Cancelled when it begins to drain.
    pub draining: CancellationToken,
}

/// Serves `GET /livez`, `/readyz` and `/metrics` and nothing else until `shutdown`. They need no key: they return names
/// and numbers.
///
/// # Errors
/// When the listener itself fails.
#[boxed]
pub async fn serve_probes(
    listener: TcpListener,
    probed: Probed,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(probes::livez::livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(read))
        .with_state(probed);
    crate::serve(listener, None, router, PROBE_LIMITS, shutdown).await
}

async fn readyz(State(probed): State<Probed>) -> Response {
    probes::readiness(&probed.views, &probed.draining).await
}

async fn read() -> Response {
    match metrics::written(turnstone_telemetry::metrics::gathered()) {
        Ok(text) => ([(CONTENT_TYPE, "text/plain")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
