//! The operator: dead letters, jobs in bulk, statistics, workers, tenants.

mod act_on_job;
mod bulk;
mod bulk_dead_letters;
mod bulk_jobs;
mod counts;
mod dead_letter;
mod dead_letter_stats;
mod dead_letters;
mod delete_dead_letter;
mod direct_worker;
mod purge_queue;
mod raw_job;
pub(crate) mod reset;
mod retry_dead_letter;
mod show_job;
mod stats;
mod stats_history;
mod tenant_setup;
mod tenant_stats;
mod tenants;
mod workers;

use crate::api::Shared;
use turnstone_ojs::OjsError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns the error for a job whose past is shared by forks.
fn forked(id: &str) -> OjsError {
    OjsError::conflict(format!("Job {id} stays as long as forks of its engagement do, which read its past."))
}

/// Returns the error for a job whose engagement has not ended.
fn has_further_inputs(id: &str) -> OjsError {
    OjsError::conflict(format!(
        "Job {id} stays until its engagement has ended, which continues with a further input."
    ))
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .merge(of_many())
        .merge(of_tenants())
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::list_for_admins))
        .routes(routes!(dead_letter::show, delete_dead_letter::delete))
        .routes(routes!(delete_dead_letter::delete_for_admins))
        .routes(routes!(dead_letter_stats::stats))
        .routes(routes!(dead_letter_stats::stats_for_clients))
        .routes(routes!(retry_dead_letter::retry))
        .routes(routes!(retry_dead_letter::retry_for_admins))
        .routes(routes!(bulk_dead_letters::retry))
        .routes(routes!(bulk_dead_letters::purge))
        .routes(routes!(show_job::show_job))
        .routes(routes!(raw_job::raw_job))
        .routes(routes!(act_on_job::cancel))
        .routes(routes!(act_on_job::retry))
        .routes(routes!(purge_queue::purge))
        .routes(routes!(stats::stats))
        .routes(routes!(stats_history::history))
        .routes(routes!(workers::list))
        .routes(routes!(direct_worker::quiet))
        .routes(routes!(direct_worker::terminate))
}

/// Returns the routes for many jobs at once.
fn of_many() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(bulk_jobs::retry))
        .routes(routes!(bulk_jobs::cancel))
        .routes(routes!(bulk_jobs::delete))
        .routes(routes!(bulk_jobs::retry_for_clients))
        .routes(routes!(bulk_jobs::cancel_for_clients))
        .routes(routes!(bulk_jobs::delete_for_clients))
}

/// Returns the routes for tenants and their limits.
fn of_tenants() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(tenants::list))
        .routes(routes!(tenant_stats::stats))
        .routes(routes!(tenant_setup::show, tenant_setup::put, tenant_setup::forget))
        .routes(routes!(tenant_setup::put_limits))
        .routes(routes!(tenant_setup::jobs))
}
