//! The scheduler: what time does to jobs, beside the flow and never in it.
//!
//! It knows nothing about turns, models, tools or HTTP. All it has is a clock, the store's [`Upkeep`] side and the
//! doorbell. Without it nothing that is available waits; only what waits for a time does.
//!
//! To add a duty: one file in `duties/`, one line in its table.
//!
//! [`Upkeep`]: turnstone_store::Upkeep

mod duties;
mod rhythm;
mod scheduler;

pub use scheduler::Scheduler;
