//! Which queues have limits, as this process saw it last: a job that leaves one of them may let another start.
//!
//! It only decides whether to ring. A limit itself is always read and checked in the transaction of the claim.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

/// The names of queues with limits.
#[derive(Default)]
pub(super) struct LimitedQueues(RwLock<BTreeSet<String>>);

impl LimitedQueues {
    /// Takes over what was read.
    pub(super) fn learn(&self, names: BTreeSet<String>) {
        let same = *self.0.read().unwrap_or_else(PoisonError::into_inner) == names;
        if !same {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
        }
    }

    /// Returns true when one of these queues has a limit.
    pub(super) fn any_of(&self, queues: &BTreeSet<String>) -> bool {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        !names.is_empty() && queues.iter().any(|queue| names.contains(queue))
    }
}
