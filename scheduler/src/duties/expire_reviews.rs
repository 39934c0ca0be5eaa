//! Reviews past their deadline: they are escalated to the next reviewers, or count as rejected and release the parked
//! job.

use super::{Entry, Interval};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "expire_reviews", interval: Interval::WhenDue, duty: |_, _| Duty::ExpireReviews };
