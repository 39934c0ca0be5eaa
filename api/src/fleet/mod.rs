//! The fleet itself: who works in it.

mod workers;

use crate::api::Shared;
use axum::Router;
use axum::routing::get;

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route("/workers", get(workers::list))
}
