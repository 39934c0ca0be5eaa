//! The routes of the endpoints beside this file.

use super::{livez, readyz};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(livez::livez))
        .routes(routes!(readyz::readyz))
        .routes(routes!(readyz::ready))
}
