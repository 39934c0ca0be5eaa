//! The limits of a fleet: kept where all processes see them, and by each process for itself while that place fails.

use super::{Admission, Grant, Limit, LimitKey, LocalLimits, RateLimits};
use crate::{StoreError, Views};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::Timestamp;

/// How often the workers are counted while limits are in use.
const COUNTED_EVERY: Duration = Duration::from_secs(10);
/// A worker that was silent for longer takes no share: three of its beats.
const SILENT_MS: i64 = 15_000;
/// The longest pause before a place that fails is asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The limits. They never fail. While the shared store does not answer, this process keeps to its share of each
/// limit, and the log says so once. Its share is the limit divided by the number of live workers seen last.
pub struct FleetwideLimits {
    place: &'static str,
    shared: Arc<dyn RateLimits>,
    local: LocalLimits,
    views: Views,
    state: Mutex<SharedState>,
}

struct SharedState {
    /// Until when the shared place is left alone, and the pauses after that; `None` while it answers.
    broken: Option<(Instant, ExponentialBackoff)>,
    count_next: Instant,
}

impl FleetwideLimits {
    /// Limits kept at `place` (a name for the log, such as `Redis`) by `shared`; `views` knows the live workers.
    #[must_use]
    pub fn new(place: &'static str, shared: Arc<dyn RateLimits>, views: Views) -> Self {
        let state = SharedState { broken: None, count_next: Instant::now() };
        Self { place, shared, local: LocalLimits::one_of(1), views, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true when the shared store is asked now. While it fails, one caller at a time tries it.
    fn asks_shared(&self) -> bool {
        match &mut self.state().broken {
            None => true,
            Some((pause_ends, _)) if Instant::now() < *pause_ends => false,
            Some((pause_ends, pauses)) => {
                *pause_ends = Instant::now() + pauses.next().unwrap_or(LONGEST_PAUSE);
                true
            }
        }
    }

    /// Records the outcome, and logs a change between success and failure.
    fn note<T>(&self, outcome: Result<T, StoreError>) -> Option<T> {
        let mut state = self.state();
        match outcome {
            Ok(answer) => {
                if state.broken.take().is_some() {
                    tracing::info!(place = self.place, "rate limits are shared by the whole fleet again");
                }
                Some(answer)
            }
            Err(error) => {
                if state.broken.is_none() {
                    let pauses = ExponentialBuilder::default()
                        .with_min_delay(Duration::from_millis(100))
                        .with_max_delay(LONGEST_PAUSE)
                        .without_max_times()
                        .with_jitter();
                    let mut pauses = pauses.build();
                    let ends = Instant::now() + pauses.next().unwrap_or(LONGEST_PAUSE);
                    state.broken = Some((ends, pauses));
                    tracing::warn!(
                        place = self.place,
                        %error,
                        workers = self.local.processes(),
                        "rate limits cannot be shared; until they can, this worker keeps to its own share of each limit"
                    );
                }
                None
            }
        }
    }

    /// Counts the live workers from time to time. Who cannot be counted now is taken as before.
    async fn count_workers(&self, now: Timestamp) {
        {
            let mut state = self.state();
            if Instant::now() < state.count_next {
                return;
            }
            state.count_next = Instant::now() + COUNTED_EVERY;
        }
        match self.views.workers().await {
            Ok(workers) => {
                let alive = workers.iter().filter(|worker| now.since(worker.seen_at) <= SILENT_MS).count();
                self.local.set_processes(alive);
            }
            Err(error) => tracing::debug!(%error, "the workers cannot be counted; trying again"),
        }
    }
}

#[async_trait]
impl RateLimits for FleetwideLimits {
    async fn admit(
        &self,
        key: &LimitKey,
        limit: &Limit,
        tokens: i64,
        now: Timestamp,
    ) -> Result<Admission, StoreError> {
        self.count_workers(now).await;
        if self.asks_shared()
            && let Some(admission) = self.note(self.shared.admit(key, limit, tokens, now).await)
        {
            return Ok(admission);
        }
        Ok(match self.local.take(key, limit, tokens, now) {
            Admission::Granted(grant) => Admission::Granted(Grant { alone: true, ..grant }),
            wait => wait,
        })
    }

    async fn settle(
        &self,
        key: &LimitKey,
        limit: &Limit,
        grant: Grant,
        used: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if grant.alone {
            self.local.give_back(key, limit, grant.left(used), now);
        } else if self.asks_shared() {
            self.note(self.shared.settle(key, limit, grant, used, now).await);
        }
        Ok(())
    }

    async fn hold(&self, key: &LimitKey, until: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        self.local.hold_until(key, until);
        if self.asks_shared() {
            self.note(self.shared.hold(key, until, now).await);
        }
        Ok(())
    }
}
