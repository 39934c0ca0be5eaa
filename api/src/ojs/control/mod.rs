//! Control of agents: pause, resume, fork, merge, tool-retry (facts: the agent cases are the only definition). Each
//! also has an endpoint at the path that OJS's SDKs use, `/v1/agent/jobs/{id}/…`.

mod fork;
mod merge;
mod pause;
mod request_fields;
mod resume;
mod tool_retry;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
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
