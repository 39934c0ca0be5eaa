//! What this worker knows of the fleet's circuit breakers (RS-26, RS-47). While all is well, a look at them is shared by every
//! call of this process and costs none of them a round trip of its own.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::{Clock, Timestamp};
use turnstone_store::StoreError;
use turnstone_store::breakers::{BreakerKey, Breakers, Passage};

/// How old what is known of other processes' breakers may be.
const LOOK: Duration = Duration::from_millis(200);

/// `breaker` of a section `[providers.<name>]` or `[tools.<name>]`: when what keeps failing is left alone for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// Failures in a row that open it; at least 1.
    pub failure_threshold: u32,
    /// How long it stays open, in milliseconds.
    pub timeout_ms: u64,
    /// Calls that are let through after that; all have to succeed to close it.
    pub half_open_requests: u32,
}

impl Default for BreakerConfig {
    /// OSSA's.
    fn default() -> Self {
        let Breaker { enabled, failure_threshold, timeout_ms, half_open_requests } = Breaker::default();
        Self { enabled, failure_threshold, timeout_ms, half_open_requests }
    }
}

impl BreakerConfig {
    /// The same as a rule.
    #[must_use]
    pub fn rule(self) -> Breaker {
        let Self { enabled, failure_threshold, timeout_ms, half_open_requests } = self;
        Breaker { enabled, failure_threshold, timeout_ms, half_open_requests }
    }
}

/// The breakers as this worker knows them. Without a keeper none ever opens.
#[derive(Default)]
pub struct BreakerWatch {
    keeper: Option<Arc<dyn Breakers>>,
    known: Mutex<Known>,
    /// Held while somebody looks.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    looked: Option<Instant>,
    /// What is not well, and until when it is open.
    troubled: HashMap<BreakerKey, Option<Timestamp>>,
}

impl BreakerWatch {
    /// A watch over the breakers of this keeper.
    #[must_use]
    pub fn new(keeper: Arc<dyn Breakers>) -> Self {
        Self { keeper: Some(keeper), ..Self::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call may be made. A store that does not answer lets it through: nothing is known against it.
    pub async fn pass(&self, clock: &dyn Clock, key: &BreakerKey, rule: &Breaker) -> Passage {
        let Some(keeper) = self.keeper.as_deref().filter(|_| rule.enabled) else { return Passage::Free };
        self.look(keeper).await;
        let Some(open_until) = self.known().troubled.get(key).copied().flatten() else {
            return Passage::Free;
        };
        let now = clock.now();
        if now < open_until {
            return Passage::Refused { until: open_until };
        }
        told(keeper.pass(key, rule, now).await).unwrap_or(Passage::Free)
    }

    /// Counts a failure; returns until when the breaker is open now, if it is.
    pub async fn failed(&self, clock: &dyn Clock, key: &BreakerKey, rule: &Breaker) -> Option<Timestamp> {
        let keeper = self.keeper.as_deref().filter(|_| rule.enabled)?;
        let open_until = told(keeper.failed(key, rule, clock.now()).await)?;
        self.known().troubled.insert(key.clone(), open_until);
        open_until
    }

    /// Counts a success. What was well stays well, and nothing is written.
    pub async fn succeeded(&self, clock: &dyn Clock, key: &BreakerKey, rule: &Breaker, probe: bool) {
        let Some(keeper) = self.keeper.as_deref().filter(|_| rule.enabled) else { return };
        if !probe && !self.known().troubled.contains_key(key) {
            return;
        }
        if told(keeper.succeeded(key, rule, probe, clock.now()).await).is_some() {
            let mut known = self.known();
            // Whether a probe closed it is looked up with the next call.
            known.looked = if probe { None } else { known.looked };
            if !probe {
                known.troubled.remove(key);
            }
        }
    }

    /// Gives back the place of a call that was let through half-open, and was not made after all or says nothing of how
    /// well it is.
    pub async fn not_made(&self, clock: &dyn Clock, key: &BreakerKey) {
        if let Some(keeper) = self.keeper.as_deref() {
            told(keeper.not_made(key, clock.now()).await);
        }
    }

    /// Looks at all of them, unless somebody in this process has just done so. While somebody does, what was seen before has to
    /// do; where nothing was, as in a worker that has just begun, everybody waits for the first look.
    async fn look(&self, keeper: &dyn Breakers) {
        if self.is_fresh() {
            return;
        }
        let _looking = match self.looking.try_lock() {
            Ok(looking) => looking,
            Err(_) if self.known().looked.is_some() => return,
            Err(_) => self.looking.lock().await,
        };
        if self.is_fresh() {
            return;
        }
        let troubled = told(keeper.troubled().await);
        let mut known = self.known();
        known.looked = Some(Instant::now());
        if let Some(troubled) = troubled {
            known.troubled = troubled.into_iter().map(|trouble| (trouble.key, trouble.open_until)).collect();
        }
    }

    fn is_fresh(&self) -> bool {
        self.known().looked.is_some_and(|at| at.elapsed() < LOOK)
    }
}

fn told<T>(outcome: Result<T, StoreError>) -> Option<T> {
    outcome
        .inspect_err(|error| tracing::debug!(%error, "the circuit breakers cannot be asked; calls are made"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use turnstone_store::breakers::Trouble;

    /// The breakers that other processes open, and the times at which this process read them.
    #[derive(Default)]
    struct Shared {
        open: Mutex<Vec<Trouble>>,
        reads: Mutex<Vec<Instant>>,
    }

    #[async_trait]
    impl Breakers for Shared {
        async fn troubled(&self) -> Result<Vec<Trouble>, StoreError> {
            self.reads.lock().unwrap().push(Instant::now());
            Ok(self.open.lock().unwrap().clone())
        }

        async fn reset(&self, _: &BreakerKey) -> Result<bool, StoreError> {
            Ok(false)
        }

        async fn pass(&self, _: &BreakerKey, _: &Breaker, _: Timestamp) -> Result<Passage, StoreError> {
            Ok(Passage::Probe)
        }

        async fn failed(
            &self,
            _: &BreakerKey,
            _: &Breaker,
            _: Timestamp,
        ) -> Result<Option<Timestamp>, StoreError> {
            Ok(None)
        }

        async fn succeeded(
            &self,
            _: &BreakerKey,
            _: &Breaker,
            _: bool,
            _: Timestamp,
        ) -> Result<(), StoreError> {
            Ok(())
        }

        async fn not_made(&self, _: &BreakerKey, _: Timestamp) -> Result<(), StoreError> {
            Ok(())
        }
    }

    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> Timestamp {
            Timestamp(43_200_000)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_breaker_that_another_process_opens_is_seen_within_a_fifth_of_a_second() {
        let shared = Arc::new(Shared::default());
        let watch = BreakerWatch::new(Arc::clone(&shared) as Arc<dyn Breakers>);
        let (key, rule) = (BreakerKey::model("test", "m"), Breaker::default());
        let pass = async || watch.pass(&Noon, &key, &rule).await;
        assert_eq!(pass().await, Passage::Free);
        let until = Noon.now().plus_ms(60_000);
        *shared.open.lock().unwrap() =
            vec![Trouble { key: key.clone(), failures: 5, open_until: Some(until) }];
        tokio::time::advance(Duration::from_millis(199)).await;
        assert_eq!(pass().await, Passage::Free);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(pass().await, Passage::Refused { until });
        for _ in 0..1_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(pass().await, Passage::Refused { until });
        }
        let reads = shared.reads.lock().unwrap();
        let pauses: Vec<u128> = reads.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
        assert_eq!(pauses, [200; 6], "the breakers are not read more often");
    }
}
