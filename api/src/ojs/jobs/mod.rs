//! Jobs: enqueue, look, list, cancel, and what happened to one.

mod cancel_job;
mod enqueue;
mod job_events;
mod list_jobs;
mod show_job;

use crate::api::Shared;
use axum::routing::{get, post};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(enqueue::enqueue))
        .route("/ojs/v1/jobs/{id}", get(show_job::show_job).delete(cancel_job::cancel_job))
        .route("/ojs/v1/jobs/{id}/cancel", post(cancel_job::cancel_job))
        .route("/ojs/v1/jobs/{id}/events", get(job_events::job_events))
        .route("/ojs/v1/admin/jobs", get(list_jobs::list_jobs))
}
