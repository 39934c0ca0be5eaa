//! Leases and pauses that were written before the clock stepped back: none lasts longer by the step.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// How long after the step they are bounded, at most, beside the time after which this process adopts it.
const INTERVAL_MS: i64 = 2_000;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "bound_waits", interval: Interval::EveryMs(INTERVAL_MS), duty: |_, _| Duty::BoundWaits };
