//! The routes of the endpoints beside this file.

use super::{costs, engagement_cost, forget, list, own, put, raise, show};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(list::list))
        .routes(routes!(show::show, put::put, forget::forget))
        .routes(routes!(raise::raise))
        .routes(routes!(own::own))
        .routes(routes!(engagement_cost::engagement_cost))
        .routes(routes!(costs::costs))
}
