//! `GET /readyz` and `GET /ready`: requests can be served. Not while draining, and not without a store.

use super::Status;
use crate::api::Shared;
use crate::reply;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tokio_util::sync::CancellationToken;
use turnstone_store::Views;

/// Shows if requests can be served.
#[utoipa::path(
    get, path = "/readyz", tag = "server",
    security(()),
    responses(
        (status = 200, description = "They can.", body = Status),
        (status = 503, description = "The server drains, or its store does not answer.", body = Status),
    )
)]
pub(crate) async fn readyz(State(app): State<Shared>) -> Response {
    readiness(&app.api.store.views, &app.api.shutdown).await
}

/// Returns whether a process is ready: it does not drain, and its store answers.
pub(crate) async fn readiness(views: &Views, draining: &CancellationToken) -> Response {
    if draining.is_cancelled() {
        return reply::json(StatusCode::SERVICE_UNAVAILABLE, &Status { status: "draining" });
    }
    let status = |answers| Status { status: if answers { "ok" } else { "store_unavailable" } };
    super::about_the_store(views, |answers, _| status(answers)).await
}
