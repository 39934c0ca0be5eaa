//! `scheduled → available` and `retryable → available` for jobs whose time has come (OJS core §6.3, OJS retry §4).

use super::{Entry, Interval};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "promote_due", interval: Interval::WhenDue, duty: |_, _| Duty::PromoteDue };
