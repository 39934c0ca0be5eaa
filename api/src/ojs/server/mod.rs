//! What the server says of itself.

mod health;
mod manifest;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(manifest::manifest))
        .routes(routes!(health::health))
        .routes(routes!(health::health_v1))
}
