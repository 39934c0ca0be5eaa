//! The routes of the endpoints beside this file.

use super::{decide, list, show};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list::list))
        .routes(routes!(show::show))
        .routes(routes!(decide::approve))
        .routes(routes!(decide::reject))
}
