//! `POST /ojs/v1/admin/reset`: deletes everything. It exists only with `--enable-reset`, for test suites that need an
//! empty server, so the OpenAPI document does not contain it.

use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde::Serialize;

/// Its path.
pub(crate) const PATH: &str = "/ojs/v1/admin/reset";

/// The data that was deleted.
#[derive(Serialize)]
struct Reset {
    reset: bool,
}

/// Returns the route.
pub(crate) fn route() -> Router<Shared> {
    Router::new().route(PATH, post(reset))
}

async fn reset(State(app): State<Shared>, operator: Operator) -> Answer {
    app.api.store.operate.reset().await?;
    operator.did("reset", "everything", "done");
    Ok(reply::ok(&Reset { reset: true }))
}
