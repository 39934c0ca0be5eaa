//! `GET /livez`: the process answers.

use crate::reply;
use axum::response::Response;

/// Shows that the process answers.
#[utoipa::path(
    get, path = "/livez", tag = "server",
    security(()),
    responses((status = 200, description = "It does.", body = super::Status))
)]
pub(crate) async fn livez() -> Response {
    reply::ok(&super::Status { status: "ok" })
}
