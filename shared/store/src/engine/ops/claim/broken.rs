//! Jobs of which something that is stored cannot be read: they are discarded with a code that says so, and keep nobody else
//! from being claimed.
//!
//! No version could go on with them, so they are not left for another one, and not tried again. They are dead letters: once
//! the row is repaired, an operator has them tried again.

use super::super::super::rows::Inconsistency;
use super::super::super::unit::Unit;
use super::super::turns;
use crate::StoreError;
use std::collections::BTreeMap;
use turnstone_domain::error::{Escalation, EscalationType, FailureKind};
use turnstone_domain::{JobError, Settlement, Timestamp};

/// Jobs that cannot be read, and why.
#[derive(Default)]
pub(super) struct Broken(BTreeMap<i64, String>);

impl Broken {
    /// What was read of a job; of one that could not be read it is noted why.
    pub(super) fn keep<T>(&mut self, seq: i64, read: Result<T, Inconsistency>) -> Option<T> {
        read.map_err(|error| self.0.entry(seq).or_insert_with(|| StoreError::from(error).to_string())).ok()
    }

    /// Nothing is stored of what the client sent.
    pub(super) fn missing(&mut self, seq: i64) {
        self.0.entry(seq).or_insert_with(|| "what its client sent is not stored any more".to_owned());
    }

    /// Whether this job is one of them.
    pub(super) fn has(&self, seq: i64) -> bool {
        self.0.contains_key(&seq)
    }

    /// Discards them, as attempts that failed before they began.
    pub(super) fn discard(&self, unit: &mut Unit, now: Timestamp) -> Result<(), StoreError> {
        for (seq, why) in &self.0 {
            tracing::error!(job = ?unit.job(*seq).map(|job| &job.id), why, "a job that cannot be read is discarded");
            let message = format!(
                "what is stored of this job cannot be read ({why}); restore the row from a backup and retry the dead letter"
            );
            let alert = Escalation { to: EscalationType::Alert, target: None, context: None };
            let error = JobError { retryable: false, ..JobError::new(FailureKind::Unreadable, message) };
            turns::settle(unit, *seq, &Settlement::Discard { error: error.escalated(alert) }, now)?;
        }
        Ok(())
    }
}
