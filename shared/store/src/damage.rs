//! Rows that cannot be read: how often this process met one, and the error of a job that has one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use turnstone_domain::JobError;
use turnstone_domain::error::{Escalation, EscalationType, FailureKind};

static MET: AtomicU64 = AtomicU64::new(0);

/// The most rows that are remembered; those beyond are logged each time.
const REMEMBERED: usize = 10_000;
static NAMED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Counts one. Returns true when the log has to name it: the first time that this process meets it.
pub(crate) fn count(what: &str) -> bool {
    MET.fetch_add(1, Ordering::Relaxed);
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    !named.contains(what) && (named.len() >= REMEMBERED || named.insert(what.to_owned()))
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
