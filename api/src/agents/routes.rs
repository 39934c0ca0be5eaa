//! The routes of the endpoints beside this file.

use super::{document, engage, list, register, remove, replace};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(list::list, register::register)).routes(routes!(
        document::document,
        engage::engage,
        replace::replace,
        remove::remove
    ))
}
