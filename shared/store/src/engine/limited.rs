//! Which queues have limits, as this process saw it last. A job that leaves a queue with a limit of claims may let another start.
//! A push into a queue with a bound needs a look before it.
//!
//! It only decides whether to ring, and whether to look. A limit itself is always read and checked in the transaction.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The names of queues.
#[derive(Default)]
struct NamedQueues(RwLock<BTreeSet<String>>);

impl NamedQueues {
    fn read(&self) -> RwLockReadGuard<'_, BTreeSet<String>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The queues with limits.
#[derive(Default)]
pub(super) struct LimitedQueues {
    /// Those with a limit of claims.
    of_claims: NamedQueues,
    /// Those with a bound, or with jobs that they refuse.
    of_pushes: NamedQueues,
}

impl LimitedQueues {
    /// Takes over what was read before a claim.
    pub(super) fn learn(&self, names: BTreeSet<String>) {
        if *self.of_claims.read() != names {
            self.of_claims.change(|known| *known = names);
        }
    }

    /// Returns true when one of these queues has a limit of claims.
    pub(super) fn any_of(&self, queues: &BTreeSet<String>) -> bool {
        let names = self.of_claims.read();
        !names.is_empty() && queues.iter().any(|queue| names.contains(queue))
    }

    /// Takes over what was read before a push into this queue.
    pub(super) fn learn_of_push(&self, queue: &str, is_bounded: bool) {
        if self.is_bounded(queue) != is_bounded {
            self.of_pushes.change(|names| match is_bounded {
                true => drop(names.insert(queue.to_owned())),
                false => drop(names.remove(queue)),
            });
        }
    }

    /// Returns true when a push into this queue needs a look before it.
    pub(super) fn is_bounded(&self, queue: &str) -> bool {
        self.of_pushes.read().contains(queue)
    }
}
