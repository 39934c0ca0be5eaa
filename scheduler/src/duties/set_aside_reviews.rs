//! Open reviews that cannot be read: without this, their jobs would wait for ever.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry = Entry {
    name: "set_aside_reviews",
    interval: Interval::EveryMs(60_000),
    duty: |_, _| Duty::SetAsideReviews,
};
