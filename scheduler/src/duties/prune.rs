//! Deletes engagements and plain jobs whose retention is over, with everything that belongs to them.

use super::{Entry, Interval};
use std::time::Duration;
use turnstone_domain::Timestamp;
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry = Entry {
    name: "prune",
    interval: Interval::EveryMs(60_000),
    duty: |now, retention| {
        // Without a retention nothing ended before this, but the store still makes room for new history.
        let begin = Timestamp(0);
        let kept_ms = |kept: Duration| i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        Duty::Prune { before: retention.map_or(begin, |kept| now.plus_ms(-kept_ms(kept))) }
    },
};
