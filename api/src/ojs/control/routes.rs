//! The routes of the endpoints beside this file.

use super::{fork, merge, pause, resume, tool_retry};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(pause::pause))
        .routes(routes!(pause::pause_job))
        .routes(routes!(resume::resume))
        .routes(routes!(resume::resume_job))
        .routes(routes!(fork::fork))
        .routes(routes!(fork::fork_job))
        .routes(routes!(merge::merge))
        .routes(routes!(merge::merge_job))
        .routes(routes!(tool_retry::tool_retry))
        .routes(routes!(tool_retry::retry_tool_of_job))
}
