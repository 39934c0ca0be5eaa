//! The routes of the endpoints beside this file.

use super::{lift, list, set};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list::list)).routes(routes!(set::set)).routes(routes!(lift::lift))
}
