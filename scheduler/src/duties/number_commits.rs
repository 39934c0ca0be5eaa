//! New commits: their places in the order of all events.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// The most time after a commit until its events have their places, also when no reader looks.
const INTERVAL_MS: i64 = 1_000;

/// See the module.
pub(crate) const ENTRY: Entry = Entry {
    name: "number_commits",
    interval: Interval::EveryMs(INTERVAL_MS),
    duty: |_, _| Duty::NumberCommits,
};
