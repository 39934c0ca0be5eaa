//! The routes of the endpoints beside this file.

use super::{cancel, create, list, progress, show};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(show::show, cancel::delete))
        .routes(routes!(cancel::cancel))
        .routes(routes!(progress::progress))
}
