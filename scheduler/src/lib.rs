//! The scheduler: the effects of time on jobs, beside the flow and never in it.
//!
//! It knows nothing about turns, models or tools, and uses HTTP only to post events to webhooks. All it has is a clock,
//! the store and the doorbell. Without it nothing that is available waits; only what waits for a time does. Any number
//! may run: one leads and acts, the others wait.
//!
//! To add a duty: one file in `duties/`, one line in its table.
//!
//! ```text
//!  clock, doorbell ─▶ tick ─▶ scheduler ─ leadership: does this one lead? ─▶ duties, in the order of their table ─▶ store
//!                                                                      ╰──▶ webhooks: make deliveries, post them
//! ```

mod duties;
#[cfg(test)]
mod fake;
mod leadership;
mod options;
mod scheduler;
mod tick;
mod webhooks;

pub use options::SchedulerOptions;
pub use scheduler::Scheduler;
pub use webhooks::{WebhookSender, WebhookSenderOptions};
