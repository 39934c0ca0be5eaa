//! The routes of the endpoints beside this file.

use super::{forget, list, put};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default().routes(routes!(list::list)).routes(routes!(put::put, forget::forget))
}
