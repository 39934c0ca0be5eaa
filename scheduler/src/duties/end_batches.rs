//! Closed batches whose jobs have all ended: the event of their end.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// How long after its last job the end of a batch is noted, at most.
const INTERVAL_MS: i64 = 5_000;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "end_batches", interval: Interval::EveryMs(INTERVAL_MS), duty: |_, _| Duty::EndBatches };
