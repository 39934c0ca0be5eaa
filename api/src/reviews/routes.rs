//! The routes of the endpoints beside this file.

use super::{decide, list, show};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(list::list))
        .routes(routes!(show::show))
        .routes(routes!(decide::approve))
        .routes(routes!(decide::reject))
}
