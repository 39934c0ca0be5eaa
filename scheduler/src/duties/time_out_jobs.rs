//! `active → retryable | discarded` for attempts that outlasted their timeout although their worker keeps the lease
//! (OJS core §4.2.3). A worker that is well ends them itself, and sooner.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "time_out_jobs", interval: Interval::WhenDue, duty: |_, _| Duty::TimeOutJobs };
