//! The routes of the endpoints beside this file.

use super::{breakers, reset_breaker, workers};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(workers::list))
        .routes(routes!(breakers::list))
        .routes(routes!(reset_breaker::reset))
}
