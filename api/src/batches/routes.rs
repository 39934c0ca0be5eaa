//! The routes of the endpoints beside this file.

use super::{close, show};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(show::show_batch)).routes(routes!(close::close_batch))
}
