//! The routes of the endpoints beside this file.

use super::{keys, receipt, verify};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(receipt::receipt))
        .routes(routes!(verify::verify))
        .routes(routes!(keys::keys))
}
