//! The routes of the endpoints beside this file.

use super::{health, manifest, metrics};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(manifest::manifest))
        .routes(routes!(health::health))
        .routes(alias(routes!(health::health), "/ojs/v1/health", "server", ["health_v1"]))
        .routes(routes!(metrics::metrics))
}
