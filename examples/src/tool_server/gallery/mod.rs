//! The tools of the gallery's agents (`examples/gallery/`): the offices of a made-up maker of instruments.

mod calendar;
mod handbook;
mod services;
mod site;
mod tickets;

pub(crate) use tickets::Desk;

use crate::tool_server::Memory;
use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

/// The routes of all offices.
pub(super) fn routes() -> Router<Arc<Memory>> {
    Router::new()
        .route("/handbook/search", post(handbook::search))
        .route("/people/find", post(calendar::find_person))
        .route("/calendar/read", post(calendar::read))
        .route("/calendar/create", post(calendar::create))
        .route("/tickets/create", post(tickets::create))
        .route("/services/status", post(services::status))
        .route("/site", get(site::page))
}
