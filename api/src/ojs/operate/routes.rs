//! The routes of the endpoints beside this file.

use super::{
    act_on_job, bulk_dead_letters, bulk_jobs, dead_letter, dead_letter_stats, dead_letters,
    delete_dead_letter, direct_worker, purge_queue, raw_job, retry_dead_letter, show_job, stats,
    stats_history, tenant_setup, tenant_stats, tenants, workers,
};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
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
