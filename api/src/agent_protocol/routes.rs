//! The routes of the endpoints beside this file.

use super::{describe, discover, getevents, process, runs, status};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(discover::discover))
        .routes(alias(routes!(discover::discover), "/ap/", "agent protocol", ["discover_here"]))
        .routes(routes!(describe::describe))
        .routes(routes!(process::process))
        .routes(routes!(process::stream_request))
        .routes(routes!(getevents::of_subject))
        .routes(routes!(getevents::of_parameter))
        .routes(routes!(getevents::of_run))
        .routes(routes!(status::status))
        .routes(routes!(runs::runs))
}
