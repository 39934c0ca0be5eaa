//! The endpoints about the server itself.

mod health;
mod manifest;
mod metrics;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(manifest::manifest))
        .routes(routes!(health::health))
        .routes(routes!(health::health_v1))
        .routes(routes!(metrics::metrics))
}
