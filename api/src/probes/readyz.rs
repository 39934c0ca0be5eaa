//! `GET /readyz`: requests can be served. Not while draining, and not without a store.

use crate::api::Shared;
use crate::reply;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

pub(crate) async fn readyz(State(app): State<Shared>) -> Response {
    let (status, word) = if app.api.shutdown.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else if super::store_answers(&app).await {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable")
    };
    reply::json(status, &json!({"status": word}))
}
