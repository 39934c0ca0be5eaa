//! Rows that cannot be read: how often this process met one, and the error of a job that has one.

use std::sync::atomic::{AtomicU64, Ordering};
use turnstone_domain::JobError;
use turnstone_domain::error::{Escalation, EscalationType, FailureKind};

static MET: AtomicU64 = AtomicU64::new(0);

/// Counts one.
pub(crate) fn count() {
    MET.fetch_add(1, Ordering::Relaxed);
}

/// Returns how often this process read a row that is damaged, since it began. One row may be read many times.
#[must_use]
pub fn damaged_rows() -> u64 {
    MET.load(Ordering::Relaxed)
}

/// Returns the error of a job of which something cannot be read: it is not tried again, and becomes a dead letter. `why`
/// names what cannot be read.
#[must_use]
pub fn unreadable(why: &str) -> JobError {
    let message = format!(
        "what is stored of this job cannot be read ({why}); restore the row from a backup and retry the dead letter"
    );
    let alert = Escalation { to: EscalationType::Alert, target: None, context: None };
    JobError { retryable: false, ..JobError::new(FailureKind::Unreadable, message) }.escalated(alert)
}
