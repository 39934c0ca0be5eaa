//! Jobs that a claim cannot read: they become dead letters, and keep no other job from being claimed.

use super::super::unreadable;
use crate::StoreError;
use crate::engine::rows::Inconsistency;
use crate::engine::unit::Unit;
use std::collections::BTreeMap;
use turnstone_domain::Timestamp;

/// Jobs that cannot be read, and why.
#[derive(Default)]
pub(in super::super) struct Broken(BTreeMap<i64, String>);

impl Broken {
    /// Returns what was read of a job, and notes the reason when it could not be read.
    pub(super) fn keep<T>(&mut self, seq: i64, read: Result<T, Inconsistency>) -> Option<T> {
        read.map_err(|error| self.add(seq, StoreError::from(error).to_string())).ok()
    }

    /// Notes why a job cannot be read.
    pub(super) fn add(&mut self, seq: i64, why: String) {
        self.0.entry(seq).or_insert(why);
    }

    /// Returns true if this job is one of them.
    pub(in super::super) fn has(&self, seq: i64) -> bool {
        self.0.contains_key(&seq)
    }

    /// Discards them, as attempts that failed before they began.
    pub(in super::super) fn discard(&self, unit: &mut Unit, now: Timestamp) -> Result<(), StoreError> {
        self.0.iter().try_for_each(|(seq, why)| unreadable::discard(unit, *seq, why, now))
    }
}
