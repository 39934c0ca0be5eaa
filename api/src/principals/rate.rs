//! Requests per minute: of a principal, and failed logins of an address.

use crate::reply::Failure;
use std::sync::atomic::{AtomicI64, Ordering};
use turnstone_domain::Timestamp;
use turnstone_ojs::OjsError;

/// The requests of this time may come at once.
const BURST_MS: i64 = 10_000;
const MINUTE_MS: i64 = 60_000;

/// A rate, with the requests that were counted.
pub(crate) struct RequestRate {
    per_minute: i64,
    /// The requests of this many milliseconds may come at once.
    burst_ms: i64,
    /// The theoretical arrival time of the next request, in milliseconds since the epoch.
    next: AtomicI64,
}

impl RequestRate {
    pub(crate) fn new(per_minute: i64) -> Self {
        Self { per_minute, burst_ms: BURST_MS, next: AtomicI64::new(i64::MIN) }
    }

    /// Returns a rate of which the requests of a whole minute may come at once.
    pub(super) fn of_bursts(per_minute: i64) -> Self {
        Self { burst_ms: MINUTE_MS, ..Self::new(per_minute) }
    }

    /// Returns the rate with another bound and the same counted requests.
    pub(super) fn with(&self, per_minute: i64) -> Self {
        Self { per_minute, burst_ms: self.burst_ms, next: AtomicI64::new(self.next.load(Ordering::Relaxed)) }
    }

    /// Returns true if it would let a whole burst pass.
    pub(crate) fn is_unused(&self, now: Timestamp) -> bool {
        self.next.load(Ordering::Relaxed) <= now.0
    }

    /// Returns the milliseconds between two requests, and how far ahead of the time they may be counted.
    fn pace(&self) -> (i64, i64) {
        let every = (MINUTE_MS / self.per_minute.max(1)).max(1);
        (every, (self.burst_ms - every).max(0))
    }

    /// Returns true if the next request would be refused.
    pub(super) fn is_exhausted(&self, now: Timestamp) -> bool {
        self.next.load(Ordering::Relaxed).max(now.0) - now.0 > self.pace().1
    }

    /// Counts a request, unless there are too many. Bursts pass.
    ///
    /// # Errors
    /// The whole seconds to wait.
    pub(super) fn take(&self, now: Timestamp) -> Result<(), u64> {
        let (every, tolerance) = self.pace();
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            let next = next.max(now.0);
            (next - now.0 <= tolerance).then_some(next + every)
        });
        taken.map(|_| ()).map_err(|next| {
            let wait_ms = (next.max(now.0) - now.0 - tolerance).max(1);
            u64::try_from(wait_ms).unwrap_or(u64::MAX).div_ceil(1000)
        })
    }

    /// Counts a request; bursts of up to ten seconds' worth of requests pass.
    ///
    /// # Errors
    /// 429 with the time to wait.
    pub(crate) fn admit(&self, now: Timestamp) -> Result<(), Failure> {
        self.take(now).map_err(|wait| {
            let message = format!("This principal may send {} requests per minute.", self.per_minute);
            let hint = "Wait for as long as Retry-After says, or ask an admin for a higher rate.";
            limited(message, hint, wait).into()
        })
    }
}

/// 429 with the seconds to wait.
pub(super) fn limited(message: String, hint: &'static str, wait: u64) -> OjsError {
    let error = OjsError::new(429, "rate_limited", message, hint).with("retry_after", wait);
    OjsError { retryable: true, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lets_a_burst_pass_and_then_one_request_at_a_time() {
        let rate = RequestRate::new(60);
        assert!(rate.is_unused(Timestamp(5_000)));
        assert_eq!((0..20).filter(|_| rate.admit(Timestamp(5_000)).is_ok()).count(), 10);
        let refused = rate.admit(Timestamp(5_000)).unwrap_err().0;
        assert_eq!((refused.status, &refused.details["retry_after"]), (429, &1.into()));
        assert!(rate.admit(Timestamp(6_000)).is_ok() && rate.admit(Timestamp(6_000)).is_err());
        assert!(!rate.is_unused(Timestamp(6_000)) && rate.is_unused(Timestamp(600_000)));
    }

    #[test]
    fn a_slow_rate_waits_for_its_minute() {
        let rate = RequestRate::new(1);
        assert!(rate.admit(Timestamp(0)).is_ok());
        let refused = rate.admit(Timestamp(1)).unwrap_err().0;
        assert_eq!(refused.details["retry_after"], 60);
        assert!(rate.admit(Timestamp(60_000)).is_ok());
    }
}
