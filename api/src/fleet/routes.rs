//! The routes of the endpoints beside this file.

use super::{breakers, reset_breaker, workers};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(workers::list))
        .routes(routes!(breakers::list))
        .routes(routes!(reset_breaker::reset))
}
