//! `GET /readyz` and `GET /ready`: requests can be served. Not while draining, and not without a store.

use super::Status;
use crate::api::{App, Shared};
use crate::reply;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// Whether requests can be served.
#[utoipa::path(
    get, path = "/readyz", tag = "server",
    responses(
        (status = 200, description = "They can.", body = Status, content_type = "application/json"),
        (status = 503, description = "The server drains, or its store does not answer.", body = Status,
         content_type = "application/json"),
    )
)]
pub(crate) async fn readyz(State(app): State<Shared>) -> Response {
    readiness(&app).await
}

/// Whether requests can be served, by the name that OJS gives it.
#[utoipa::path(
    get, path = "/ready", tag = "server",
    responses(
        (status = 200, description = "They can.", body = Status, content_type = "application/openjobspec+json"),
        (status = 503, description = "The server drains, or its store does not answer.", body = Status,
         content_type = "application/openjobspec+json"),
    )
)]
pub(crate) async fn ready(State(app): State<Shared>) -> Response {
    readiness(&app).await
}

async fn readiness(app: &App) -> Response {
    if app.api.shutdown.is_cancelled() {
        return reply::json(StatusCode::SERVICE_UNAVAILABLE, &Status { status: "draining" });
    }
    let status = |answers| Status { status: if answers { "ok" } else { "store_unavailable" } };
    super::about_the_store(app, |answers, _| status(answers)).await
}
