//! Queues: their jobs, pauses, bounds and limits, and the sharing of workers.

pub(super) mod brief;
mod configure;
pub(super) mod limits;
pub(super) mod list_queues;
pub(super) mod pause;
mod pools;
pub(super) mod pressure;
mod put_queue;
pub(crate) mod routes;
mod settings;
pub(super) mod show_queue;
