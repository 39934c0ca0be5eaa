//! What Prometheus reads of a process that has no api: a worker counts for itself, so each one is scraped.

use crate::metrics;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves `GET /metrics` and nothing else until `shutdown`. It asks for no key: what it tells is names and numbers.
///
/// # Errors
/// When the listener itself fails.
pub async fn serve_metrics(listener: TcpListener, shutdown: CancellationToken) -> std::io::Result<()> {
    let router = Router::new().route("/metrics", get(read));
    crate::serve(listener, None, router, crate::DEFAULT_CLIENT_PATIENCE, shutdown).await
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
