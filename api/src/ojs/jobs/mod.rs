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
pub(crate) mod routes;
mod show_job;
mod show_result;
pub(crate) mod submitter;
