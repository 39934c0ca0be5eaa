//! The scheduler: the effects of time on jobs. No job passes through it: workers claim jobs from the store.
//!
//! It knows nothing about turns, models or tools, and uses HTTP only to post events to webhooks. Its parts are a clock, the
//! store and the doorbell. While no scheduler runs, available jobs are claimed and run as usual. Jobs that wait for a time
//! wait longer: scheduled and retryable jobs, expired leases, reviews and cron entries. Any number of schedulers may run;
//! one leads, and the others wait to take over.
//!
//! To add a duty, write a file in `duties/`, a line in its table, and a variant of `Duty` in the store.
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
