//! `GET /health`: whether the server and its store are well (OJS HTTP binding §4.2).

use crate::api::Shared;
use crate::{probes, reply};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use std::time::Instant;

pub(crate) async fn health(State(app): State<Shared>) -> Response {
    let asked = Instant::now();
    let answers = probes::store_answers(&app).await;
    let latency_ms = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (status, word) = match answers {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    let uptime_seconds = app.api.clock.now().since(app.started_at) / 1000;
    reply::json(
        status,
        &json!({
            "status": word,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": uptime_seconds,
            "backend": {"type": app.api.backend, "status": word, "latency_ms": latency_ms},
        }),
    )
}
