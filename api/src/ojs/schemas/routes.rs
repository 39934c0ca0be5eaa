//! The routes of the endpoints beside this file.

use super::{binding, change_mode, list_schemas, register, remove, show_schema, versions};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(list_schemas::list_schemas))
        .routes(routes!(show_schema::latest, change_mode::of_all))
        .routes(routes!(versions::versions))
        .routes(routes!(register::register, show_schema::version, change_mode::of_one, remove::remove))
        .routes(alias(
            routes!(list_schemas::list_schemas),
            "/ojs/v1/schemas",
            "schemas",
            ["list_schemas_for_clients"],
        ))
        .routes(routes!(binding::register))
        .routes(routes!(binding::latest))
        .routes(routes!(binding::versions))
        .routes(routes!(binding::version, binding::remove))
}
