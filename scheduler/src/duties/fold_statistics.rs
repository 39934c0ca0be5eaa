//! Adds jobs that have ended to the hourly statistics, each once.

use super::{Entry, Rhythm};
use turnstone_store::Duty;

/// How far the statistics stay behind. The end of a job is written a while after the time that it bears, longer when
/// the database does not answer; one that is written behind the mark of the statistics is never counted.
const LAG_MS: i64 = 120_000;

/// See the module.
pub(crate) const ENTRY: Entry = Entry {
    name: "fold_statistics",
    rhythm: Rhythm::EveryMs(60_000),
    duty: |now, _| Duty::FoldStatistics { until: now.plus_ms(-LAG_MS) },
};
