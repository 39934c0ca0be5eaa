//! The routes of the endpoints beside this file.

use super::{create, list, own, revoke, rotate};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list::list, create::create))
        .routes(routes!(revoke::revoke))
        .routes(routes!(rotate::rotate))
        .routes(routes!(own::own))
}
