//! A clock that advances only when a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use turnstone_domain::{Clock, Timestamp};

/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600_000;

/// The clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl Default for ManualClock {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(START)))
    }
}

impl ManualClock {
    /// Moves it forward.
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
