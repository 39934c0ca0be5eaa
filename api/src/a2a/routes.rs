//! The routes of the endpoints beside this file.

use super::{call, card, directory};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(directory::directory))
        .routes(routes!(card::card))
        .routes(routes!(call::call))
}
