//! The right to write one job until a time, proven by a fencing token.

use crate::{JobId, Timestamp};

/// A lease. Every write carries it; a write that matches no row means that the lease is lost, and then the holder
/// stops and touches nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The job that may be written.
    pub job: JobId,
    /// Random per claim, so that two claims of the same attempt can never be confused.
    pub token: String,
    /// When the right ends unless it is extended. Every checkpoint extends it.
    pub expires_at: Timestamp,
}
