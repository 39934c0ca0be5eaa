//! The routes of the endpoints beside this file.

use super::{call, card, directory};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(directory::directory))
        .routes(routes!(card::card))
        .routes(routes!(call::call))
}
