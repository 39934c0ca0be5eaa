//! The inbox of reviews: list, show, approve, reject.

mod decide;
mod list;
mod show;

use crate::api::Shared;
use axum::Router;
use axum::routing::{get, post};

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/reviews", get(list::list))
        .route("/reviews/{id}", get(show::show))
        .route("/reviews/{id}/approve", post(decide::approve))
        .route("/reviews/{id}/reject", post(decide::reject))
}
