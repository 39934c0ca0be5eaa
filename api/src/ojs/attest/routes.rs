//! The routes of the endpoints beside this file.

use super::{keys, receipt, verify};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(receipt::receipt))
        .routes(routes!(verify::verify))
        .routes(routes!(keys::keys))
}
