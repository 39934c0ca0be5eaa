//! The routes of the endpoints beside this file.

use super::{create, list, own, revoke, rotate};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(list::list, create::create))
        .routes(routes!(revoke::revoke))
        .routes(routes!(rotate::rotate))
        .routes(routes!(own::own))
}
