//! A tiny tool server: a search, a travel desk, an answered-questions desk and the offices of the gallery, all from
//! built-in data. It logs every
//! call it sees, so that one can count how often an agent really called.

mod calls;
mod faqs;
mod flights;
mod gallery;
mod library;
mod overlap;
mod search;

use axum::Router;
use axum::routing::{get, post};
use calls::Calls;
use flights::Bookings;
use gallery::Desk;
use std::sync::Arc;

/// Everything the server remembers, for as long as it runs.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    calls: Calls,
    bookings: Bookings,
    desk: Desk,
}

/// The server: `POST /search`, `/flights/search`, `/flights/book`, `/faqs/search`, what the gallery needs, and `GET /log`.
pub fn tool_server() -> Router {
    Router::new()
        .route("/search", post(search::search))
        .route("/flights/search", post(flights::search))
        .route("/flights/book", post(flights::book))
        .route("/faqs/search", post(faqs::search))
        .merge(gallery::routes())
        .route("/log", get(calls::log))
        .with_state(Arc::new(Memory::default()))
}

#[cfg(test)]
mod tests;
