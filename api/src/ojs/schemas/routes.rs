//! The routes of the endpoints beside this file.

use super::{binding, change_mode, list_schemas, register, remove, show_schema, versions};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list_schemas::list_schemas))
        .routes(routes!(show_schema::latest, change_mode::of_all))
        .routes(routes!(versions::versions))
        .routes(routes!(register::register, show_schema::version, change_mode::of_one, remove::remove))
        .routes(routes!(binding::list, binding::register))
        .routes(routes!(binding::latest))
        .routes(routes!(binding::versions))
        .routes(routes!(binding::version, binding::remove))
}
