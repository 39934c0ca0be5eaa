//! Jobs that a claim cannot read or must not run: they become dead letters, and keep no other job from being claimed.

use super::super::{turns, unreadable};
use crate::StoreError;
use crate::engine::rows::Inconsistency;
use crate::engine::unit::Unit;
use std::collections::BTreeMap;
use turnstone_domain::{JobError, Settlement, Timestamp};

/// Jobs that cannot be read or must not run, and why.
#[derive(Default)]
pub(in super::super) struct Broken {
    unreadable: BTreeMap<i64, String>,
    refused: BTreeMap<i64, JobError>,
}

impl Broken {
    /// Returns what was read of a job, and notes the reason when it could not be read.
    pub(super) fn keep<T>(&mut self, seq: i64, read: Result<T, Inconsistency>) -> Option<T> {
        read.map_err(|error| self.add(seq, StoreError::from(error).to_string())).ok()
    }

    /// Notes why a job cannot be read.
    pub(super) fn add(&mut self, seq: i64, why: String) {
        self.unreadable.entry(seq).or_insert(why);
    }

    /// Notes the error of a job that must not run.
    pub(super) fn refuse(&mut self, seq: i64, error: JobError) {
        self.refused.insert(seq, error);
    }

    /// Returns true if this job is one of them.
    pub(in super::super) fn has(&self, seq: i64) -> bool {
        self.unreadable.contains_key(&seq) || self.refused.contains_key(&seq)
    }

    /// Discards them, as attempts that failed before they began.
    pub(in super::super) fn discard(&self, unit: &mut Unit, now: Timestamp) -> Result<(), StoreError> {
        self.unreadable.iter().try_for_each(|(seq, why)| unreadable::discard(unit, *seq, why, now))?;
        let refused = self.refused.iter().filter(|(seq, _)| !self.unreadable.contains_key(seq));
        refused
            .map(|(seq, error)| (seq, Settlement::Discard { error: error.clone() }))
            .try_for_each(|(seq, settlement)| turns::settle(unit, *seq, &settlement, now))
    }
}
