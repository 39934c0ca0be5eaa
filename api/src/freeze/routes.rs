//! The routes of the endpoints beside this file.

use super::{lift, list, set};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default().routes(routes!(list::list)).routes(routes!(set::set)).routes(routes!(lift::lift))
}
