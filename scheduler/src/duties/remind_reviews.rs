//! Reminders of open reviews: an event per interval, for feeds and webhooks.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "remind_reviews", interval: Interval::WhenDue, duty: |_, _| Duty::RemindReviews };
