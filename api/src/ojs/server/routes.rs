//! The routes of the endpoints beside this file.

use super::{health, manifest, metrics};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(manifest::manifest))
        .routes(routes!(health::health))
        .routes(routes!(health::health_v1))
        .routes(routes!(metrics::metrics))
}
