//! `GET /livez`: the process answers.

use crate::reply;
use axum::response::Response;
use serde_json::json;

pub(crate) async fn livez() -> Response {
    reply::ok(&json!({"status": "ok"}))
}
