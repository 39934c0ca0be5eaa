//! Jobs: enqueue, show, list, cancel, and their events.

pub(crate) mod accept;
pub(crate) mod accept_all;
mod batch;
pub(super) mod cancel_job;
mod enqueue;
mod flow;
mod idempotency;
mod job_events;
pub(super) mod list_jobs;
mod list_slice;
mod show_job;
mod show_result;
pub(crate) mod submitter;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(enqueue::enqueue, list_slice::list))
        .routes(routes!(batch::batch))
        .routes(routes!(show_job::show_job, cancel_job::delete_job))
        .routes(routes!(cancel_job::cancel_job))
        .routes(routes!(job_events::job_events))
        .routes(routes!(show_result::show_result))
        .routes(routes!(list_jobs::list_jobs))
}
