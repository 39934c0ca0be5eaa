//! Queues: their jobs, pauses, bounds and limits, and the sharing of workers.

mod configure;
mod counts;
mod limits;
pub(super) mod list_queues;
mod pause;
mod pools;
pub(super) mod pressure;
mod put_queue;
pub(crate) mod routes;
mod settings;
mod show_queue;
