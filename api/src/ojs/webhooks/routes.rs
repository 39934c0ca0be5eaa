//! The routes of the endpoints beside this file.

use super::{create, delete, deliveries, list, patch, redeliver, rotate_secret, show, test};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(show::show, patch::patch, delete::delete))
        .routes(routes!(test::test))
        .routes(routes!(rotate_secret::rotate_secret))
        .routes(routes!(deliveries::deliveries))
        .routes(routes!(redeliver::redeliver))
}
