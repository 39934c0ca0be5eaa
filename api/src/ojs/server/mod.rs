//! What the server says of itself.

mod health;
mod manifest;

use crate::api::Shared;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .route("/ojs/manifest", get(manifest::manifest))
        .route("/health", get(health::health))
        .route("/ojs/v1/health", get(health::health))
}
