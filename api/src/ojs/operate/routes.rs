//! The routes of the endpoints beside this file.

use super::{
    act_on_job, bulk_dead_letters, bulk_jobs, dead_letter, dead_letter_stats, dead_letters,
    delete_dead_letter, direct_worker, purge_queue, raw_job, retry_dead_letter, show_job, stats,
    stats_history, tenant_setup, tenant_stats, tenants, workers,
};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .merge(of_many())
        .merge(of_tenants())
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::list_for_admins))
        .routes(routes!(dead_letter::show, delete_dead_letter::delete))
        .routes(routes!(delete_dead_letter::delete_for_admins))
        .routes(routes!(dead_letter_stats::stats))
        .routes(alias(
            routes!(dead_letter_stats::stats),
            "/ojs/v1/dead-letter/stats",
            "dead letters",
            ["stats_for_clients"],
        ))
        .routes(routes!(retry_dead_letter::retry))
        .routes(alias(
            routes!(retry_dead_letter::retry),
            "/ojs/v1/admin/dead-letter/{id}/retry",
            "admin",
            ["retry_for_admins"],
        ))
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
fn of_many() -> Routes {
    Routes::default()
        .routes(routes!(bulk_jobs::retry))
        .routes(routes!(bulk_jobs::cancel))
        .routes(routes!(bulk_jobs::delete))
        .routes(alias(routes!(bulk_jobs::retry), "/ojs/v1/jobs/bulk/retry", "jobs", ["retry_for_clients"]))
        .routes(alias(routes!(bulk_jobs::cancel), "/ojs/v1/jobs/bulk/cancel", "jobs", ["cancel_for_clients"]))
        .routes(alias(routes!(bulk_jobs::delete), "/ojs/v1/jobs/bulk/delete", "jobs", ["delete_for_clients"]))
}

/// Returns the routes for tenants and their limits.
fn of_tenants() -> Routes {
    Routes::default()
        .routes(routes!(tenants::list))
        .routes(routes!(tenant_stats::stats))
        .routes(routes!(tenant_setup::show, tenant_setup::put, tenant_setup::forget))
        .routes(routes!(tenant_setup::put_limits))
        .routes(routes!(tenant_setup::jobs))
}
