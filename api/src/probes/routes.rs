//! The routes of the endpoints beside this file.

use super::{livez, readyz};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default().routes(routes!(livez::livez)).routes(routes!(readyz::readyz)).routes(alias(
        routes!(readyz::readyz),
        "/ready",
        "server",
        ["ready"],
    ))
}
