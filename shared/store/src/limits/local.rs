//! Limits of one process, in its memory: all of them when it is alone, a share when it cannot ask the others.

use super::bucket::{Bucket, Terms};
use super::{Admission, Grant, Limit, LimitKey, RateLimits};
use crate::StoreError;
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use turnstone_domain::Timestamp;

/// With more buckets than this, those that were not used for a while are forgotten.
const KEPT: usize = 10_000;
/// How long a bucket is remembered at least; by then it is full again, whatever the limit.
const REMEMBERED_MS: i64 = 600_000;

/// The limits.
#[derive(Debug)]
pub struct LocalLimits {
    share: AtomicUsize,
    kept: Mutex<KeptBuckets>,
}

#[derive(Debug, Default)]
struct KeptBuckets {
    buckets: HashMap<String, Bucket>,
    holds: HashMap<String, Timestamp>,
}

impl LocalLimits {
    /// The limits of a process that is one of `processes`; each takes an equal share.
    #[must_use]
    pub fn one_of(processes: usize) -> Self {
        Self { share: AtomicUsize::new(processes.max(1)), kept: Mutex::default() }
    }

    /// Says how many processes there are now.
    pub(super) fn set_processes(&self, processes: usize) {
        self.share.store(processes.max(1), Ordering::Relaxed);
    }

    /// How many processes share the limits.
    pub(super) fn processes(&self) -> usize {
        self.share.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self, key: &LimitKey, limit: &Limit, tokens: i64, now: Timestamp) -> Admission {
        let mut kept = self.kept();
        if let Some(until) = kept.holds.get(&key.hold()).filter(|until| **until > now) {
            return Admission::Wait { until: *until, held: true };
        }
        let terms = Terms::shared(limit, self.processes());
        let name = key.bucket();
        let bucket = kept.buckets.get(&name).copied().unwrap_or_else(|| Bucket::full(&terms, now));
        let (bucket, wait) = bucket.take(&terms, tokens, now);
        kept.forget(now);
        kept.buckets.insert(name, bucket);
        match wait {
            Some(until) => Admission::Wait { until, held: false },
            None => Admission::Granted(Grant::of(tokens)),
        }
    }

    pub(super) fn give_back(&self, key: &LimitKey, limit: &Limit, tokens: i64, now: Timestamp) {
        let terms = Terms::shared(limit, self.processes());
        if let Some(bucket) = self.kept().buckets.get_mut(&key.bucket()) {
            *bucket = bucket.give_back(&terms, tokens, now);
        }
    }

    pub(super) fn hold_until(&self, key: &LimitKey, until: Timestamp) {
        let mut kept = self.kept();
        let held = kept.holds.entry(key.hold()).or_insert(until);
        *held = until.max(*held);
    }

    fn kept(&self) -> MutexGuard<'_, KeptBuckets> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptBuckets {
    fn forget(&mut self, now: Timestamp) {
        if self.buckets.len() >= KEPT {
            self.buckets.retain(|_, bucket| now.since(bucket.as_of) < REMEMBERED_MS);
            self.holds.retain(|_, until| *until > now);
        }
    }
}

#[async_trait]
impl RateLimits for LocalLimits {
    async fn admit(
        &self,
        key: &LimitKey,
        limit: &Limit,
        tokens: i64,
        now: Timestamp,
    ) -> Result<Admission, StoreError> {
        Ok(self.take(key, limit, tokens, now))
    }

    async fn settle(
        &self,
        key: &LimitKey,
        limit: &Limit,
        grant: Grant,
        used: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.give_back(key, limit, grant.left(used), now);
        Ok(())
    }

    async fn hold(&self, key: &LimitKey, until: Timestamp, _: Timestamp) -> Result<(), StoreError> {
        self.hold_until(key, until);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);
    const LIMIT: Limit = Limit { requests_per_minute: Some(60), tokens_per_minute: None };
    const GRANTED: Admission = Admission::Granted(Grant { tokens: 0, alone: false });

    #[test]
    fn each_process_takes_its_share() {
        let key = LimitKey::new("p", "m", "");
        for (processes, at_once, next_ms) in [(1, 10, 1_000), (3, 3, 2_000), (100, 1, 100_000)] {
            let limits = LocalLimits::one_of(processes);
            let granted = (0..).take_while(|_| limits.take(&key, &LIMIT, 0, NOW) == GRANTED).count();
            let wait = Admission::Wait { until: NOW.plus_ms(next_ms), held: false };
            assert_eq!(
                (granted, limits.take(&key, &LIMIT, 0, NOW)),
                (at_once, wait),
                "{processes} processes"
            );
        }
    }

    #[test]
    fn a_hold_counts_for_every_tenant_and_only_grows() {
        let limits = LocalLimits::one_of(1);
        let (one, other) = (LimitKey::new("p", "m", "one"), LimitKey::new("p", "m", "other"));
        limits.hold_until(&one, NOW.plus_ms(5_000));
        limits.hold_until(&one, NOW.plus_ms(1_000));
        let held = Admission::Wait { until: NOW.plus_ms(5_000), held: true };
        assert_eq!(limits.take(&other, &LIMIT, 0, NOW), held);
        assert_eq!(limits.take(&LimitKey::new("p", "other", "one"), &LIMIT, 0, NOW), GRANTED);
        assert_eq!(limits.take(&other, &LIMIT, 0, NOW.plus_ms(5_000)), GRANTED);
    }

    #[test]
    fn unused_buckets_are_deleted() {
        let limits = LocalLimits::one_of(1);
        for tenant in 0..=KEPT {
            let now = NOW.plus_ms(if tenant < KEPT { 0 } else { REMEMBERED_MS });
            limits.take(&LimitKey::new("p", "m", &tenant.to_string()), &LIMIT, 0, now);
        }
        assert_eq!(limits.kept().buckets.len(), 1);
    }
}
