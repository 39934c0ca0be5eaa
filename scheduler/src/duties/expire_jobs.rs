//! Any living state `→ discarded` for jobs whose `expires_at` has passed (OJS core §3).

use super::{Entry, Interval};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "expire_jobs", interval: Interval::WhenDue, duty: |_, _| Duty::ExpireJobs };
