//! The routes of the endpoints beside this file.

use super::{close, show};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default().routes(routes!(show::show_batch)).routes(routes!(close::close_batch))
}
