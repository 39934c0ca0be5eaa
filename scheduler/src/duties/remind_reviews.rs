//! Open reviews whose reviewers are to be reminded: an event per interval, which feeds and webhooks carry.

use super::{Entry, Rhythm};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "remind_reviews", rhythm: Rhythm::WhenDue, duty: |_, _| Duty::RemindReviews };
