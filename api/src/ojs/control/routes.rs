//! The routes of the endpoints beside this file.

use super::{fork, merge, pause, resume, tool_retry};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(pause::pause))
        .routes(alias(routes!(pause::pause), "/v1/agent/jobs/{id}/pause", "agents", ["pause_job"]))
        .routes(routes!(resume::resume))
        .routes(alias(routes!(resume::resume), "/v1/agent/jobs/{id}/resume", "agents", ["resume_job"]))
        .routes(routes!(fork::fork))
        .routes(alias(routes!(fork::fork), "/v1/agent/jobs/{id}/fork", "agents", ["fork_job"]))
        .routes(routes!(merge::merge))
        .routes(alias(routes!(merge::merge), "/v1/agent/jobs/{id}/merge", "agents", ["merge_job"]))
        .routes(routes!(tool_retry::tool_retry))
        .routes(alias(
            routes!(tool_retry::tool_retry),
            "/v1/agent/jobs/{id}/tool-retry",
            "agents",
            ["retry_tool_of_job"],
        ))
}
