//! The OJS HTTP binding. Jobs here; queues, workers and workflows join as they are built.

mod cancel_job;
mod enqueue;
mod health;
mod job_events;
mod list_jobs;
mod manifest;
mod show_job;

use crate::api::Shared;
use axum::Router;
use axum::routing::{get, post};

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/ojs/manifest", get(manifest::manifest))
        .route("/health", get(health::health))
        .route("/ojs/v1/health", get(health::health))
        .route("/ojs/v1/jobs", post(enqueue::enqueue))
        .route("/ojs/v1/jobs/{id}", get(show_job::show_job).delete(cancel_job::cancel_job))
        .route("/ojs/v1/jobs/{id}/cancel", post(cancel_job::cancel_job))
        .route("/ojs/v1/jobs/{id}/events", get(job_events::job_events))
        .route("/ojs/v1/admin/jobs", get(list_jobs::list_jobs))
}
