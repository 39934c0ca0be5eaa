//! Jobs that wait for a budget which limits nothing any more, although its change let none go on.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// The longest that such a job waits.
const INTERVAL_MS: i64 = 60_000;

/// See the module.
pub(crate) const ENTRY: Entry = Entry {
    name: "find_lost_waits",
    interval: Interval::EveryMs(INTERVAL_MS),
    duty: |_, _| Duty::FindLostWaits,
};
