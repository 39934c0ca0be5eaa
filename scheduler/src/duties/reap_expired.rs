//! `active → available` for jobs whose lease ran out: the worker is gone, and another one continues from the last
//! checkpoint.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "reap_expired", interval: Interval::WhenDue, duty: |_, _| Duty::ReapExpired };
