//! Deletes engagements and plain jobs whose retention is over, with everything that belongs to them.

use super::{Entry, Rhythm};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry = Entry {
    name: "prune",
    rhythm: Rhythm::EveryMs(60_000),
    duty: |now, retention| {
        let kept_ms = i64::try_from(retention?.as_millis()).unwrap_or(i64::MAX);
        Some(Duty::Prune { before: now.plus_ms(-kept_ms) })
    },
};
