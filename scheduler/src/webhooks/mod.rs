//! Webhooks: events since the mark become deliveries, and deliveries that are due are posted.
//!
//! A delivery is taken by moving the time at which it is due, then posted, then settled. A scheduler that dies in
//! between delays it, and it is posted again under the same id: every delivery arrives at least once.

mod fan_out;
mod post;
mod retry;
mod sign;
mod webhook_sender;

pub use webhook_sender::{WebhookSender, WebhookSenderOptions};
