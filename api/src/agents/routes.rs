//! The routes of the endpoints beside this file.

use super::{document, engage, list, register, remove, replace};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default().routes(routes!(list::list, register::register)).routes(routes!(
        document::document,
        engage::engage,
        replace::replace,
        remove::remove
    ))
}
