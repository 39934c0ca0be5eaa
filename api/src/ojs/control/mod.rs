//! Control of agents: pause, resume, fork, merge, tool-retry.

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
}
