//! The writes that the database refuses for a while, as probes see them.

use crate::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Writes that fail for less time are no trouble yet: a transaction may have been broken off.
const NOTICED: Duration = Duration::from_millis(300);
/// Without a further write for this long, nothing is known.
const REMEMBERED: Duration = Duration::from_secs(3);

/// The failure of this process's writes, and its beginning.
#[derive(Default)]
pub(super) struct Refusals(Mutex<Option<Failing>>);

struct Failing {
    since: Instant,
    last: Instant,
    error: StoreError,
}

impl Refusals {
    /// Notes that the database took no write.
    pub(super) fn failed(&self, error: &StoreError) {
        let now = Instant::now();
        let mut failing = self.failing();
        let since = failing.as_ref().filter(|one| now - one.last < REMEMBERED).map_or(now, |one| one.since);
        *failing = Some(Failing { since, last: now, error: error.clone() });
    }

    /// Notes that the database took a write.
    pub(super) fn succeeded(&self) {
        *self.failing() = None;
    }

    /// Returns why writes fail at present.
    pub(super) fn current(&self) -> Option<StoreError> {
        let failing = self.failing();
        let one = failing.as_ref()?;
        (one.last.elapsed() < REMEMBERED && one.since.elapsed() >= NOTICED).then(|| one.error.clone())
    }

    fn failing(&self) -> MutexGuard<'_, Option<Failing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
