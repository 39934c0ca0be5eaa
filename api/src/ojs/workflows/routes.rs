//! The routes of the endpoints beside this file.

use super::{cancel, create, list, progress, show};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(show::show, cancel::delete))
        .routes(routes!(cancel::cancel))
        .routes(routes!(progress::progress))
}
