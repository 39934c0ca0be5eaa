//! The operator: dead letters, jobs in bulk, statistics, workers, tenants.

mod act_on_job;
pub(super) mod bulk;
mod bulk_dead_letters;
mod bulk_jobs;
mod dead_letter;
mod dead_letter_stats;
mod dead_letters;
mod delete_dead_letter;
mod direct_worker;
mod purge_queue;
mod raw_job;
pub(crate) mod reset;
mod retry_dead_letter;
pub(crate) mod routes;
mod show_job;
mod stats;
mod stats_history;
mod tenant_setup;
mod tenant_stats;
mod tenants;
pub(super) mod workers;

use turnstone_ojs::OjsError;

/// Returns the error for a job whose past is shared by forks or branches.
fn forked(id: &str) -> OjsError {
    OjsError::conflict(format!("Job {id} stays as long as forks of its engagement do, which read its past."))
}

/// Returns the error for a job whose engagement has not ended.
fn has_further_inputs(id: &str) -> OjsError {
    OjsError::conflict(format!(
        "Job {id} stays until its engagement has ended, which continues with a further input."
    ))
}
