//! Reviews past their deadline: the next in line are asked, or silence counts as no and the parked job goes on to learn it.

use super::{Entry, Rhythm};
use turnstone_store::Duty;

/// See the module.
pub(crate) const ENTRY: Entry =
    Entry { name: "expire_reviews", rhythm: Rhythm::WhenDue, duty: |_, _| Duty::ExpireReviews };
