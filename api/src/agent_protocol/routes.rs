//! The routes of the endpoints beside this file.

use super::{describe, discover, getevents, process, runs, status};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(discover::discover))
        .routes(routes!(discover::discover_here))
        .routes(routes!(describe::describe))
        .routes(routes!(process::process))
        .routes(routes!(process::stream_request))
        .routes(routes!(getevents::of_subject))
        .routes(routes!(getevents::of_parameter))
        .routes(routes!(getevents::of_run))
        .routes(routes!(status::status))
        .routes(routes!(runs::runs))
}
