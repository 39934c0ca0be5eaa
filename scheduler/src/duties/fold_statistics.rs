//! Adds jobs that have ended to the hourly statistics, each once.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// The delay of the statistics, in milliseconds. A job's end may be written later than the time that it carries, longer
/// when the database does not answer. An end that is written behind the mark of the statistics is never counted.
const LAG_MS: i64 = 120_000;

/// See the module.
pub(crate) const ENTRY: Entry = Entry {
    name: "fold_statistics",
    interval: Interval::EveryMs(60_000),
    duty: |now, _| Duty::FoldStatistics { until: now.plus_ms(-LAG_MS) },
};
