//! This worker's view of the fleet's circuit breakers (RS-26, RS-47). While no service fails, all calls of
//! this process share one read of them, and none waits for a round trip of its own.

use crate::state::secured::Secured;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::{Clock, JobId, Lease, Timestamp};
use turnstone_store::StoreError;
use turnstone_store::breakers::{BreakerKey, BreakerStep, Breakers, Passage, Stepped};

/// The age at which the view of other processes' breakers is read again.
const LOOK: Duration = Duration::from_millis(200);

/// `breaker` of a section `[providers.<name>]` or `[tools.<name>]`: the rule for stopping calls to a service
/// that fails. Absent keys have their defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerConfig {
    /// True if there is a breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The failed calls that open it; 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<u32>,
    /// The least share of failures among the last calls, in percent; 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_share: Option<u32>,
    /// The time for which it refuses every call, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Trial calls that have to succeed after that to close it; 1 to 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_open_requests: Option<u32>,
}

impl BreakerConfig {
    /// Checks the numbers.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        for (key, given, most) in [
            ("failure_threshold", self.failure_threshold, 1_000),
            ("failure_share", self.failure_share, 100),
            ("half_open_requests", self.half_open_requests, 1_000),
        ] {
            if let Some(given) = given.filter(|given| !(1..=most).contains(given)) {
                return Err(format!("breaker.{key}: must be between 1 and {most} (got {given})"));
            }
        }
        Ok(())
    }

    /// Returns a default with the keys of this section in place of its own.
    #[must_use]
    pub fn over(self, default: Breaker) -> Breaker {
        Breaker {
            enabled: self.enabled.unwrap_or(default.enabled),
            failure_threshold: self.failure_threshold.unwrap_or(default.failure_threshold),
            failure_share: self.failure_share.unwrap_or(default.failure_share),
            once_per_job: default.once_per_job,
            timeout_ms: self.timeout_ms.unwrap_or(default.timeout_ms),
            half_open_requests: self.half_open_requests.unwrap_or(default.half_open_requests),
        }
    }
}

/// This worker's view of the breakers. Without a keeper none ever opens.
#[derive(Default)]
pub struct BreakerWatch {
    keeper: Option<Arc<dyn Breakers>>,
    known: Mutex<Known>,
    /// Held during a read.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    looked: Option<Instant>,
    /// The breakers with failures that count, and those that are open or half-open.
    troubled: HashSet<BreakerKey>,
    /// The breakers whose opening this process logged, and whose closing it has not logged yet.
    announced: HashSet<BreakerKey>,
    /// Successes that the store has not counted yet.
    successes: HashMap<BreakerKey, Tally>,
}

/// Successful calls since the last failure that was counted.
#[derive(Clone, Copy, Default)]
struct Tally {
    successes: u32,
    /// The time since which they wait to be counted.
    since: Option<Instant>,
}

/// A circuit breaker, and the rule that it follows.
#[derive(Clone, Debug)]
pub struct Circuit {
    /// The breaker.
    pub key: BreakerKey,
    /// Its rule.
    pub rule: Breaker,
}

/// A success to report to the store.
#[derive(Debug)]
pub struct Success {
    circuit: Circuit,
    step: BreakerStep,
}

impl BreakerWatch {
    /// Returns a view of the breakers of this keeper.
    #[must_use]
    pub fn new(keeper: Arc<dyn Breakers>) -> Self {
        Self { keeper: Some(keeper), ..Self::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keeper(&self, circuit: &Circuit) -> Option<&dyn Breakers> {
        self.keeper.as_deref().filter(|_| circuit.rule.enabled)
    }

    /// Asks for permission to make a call under the lease of a job. A store that does not answer grants it,
    /// because no failure of the service is known.
    pub async fn pass(&self, _: Secured<'_>, clock: &dyn Clock, circuit: &Circuit, lease: &Lease) -> Passage {
        let Some(keeper) = self.keeper(circuit) else { return Passage::Free };
        if !self.is_fresh() {
            Box::pin(self.look(keeper)).await;
        }
        if !self.known().troubled.contains(&circuit.key) {
            return Passage::Free;
        }
        let step = BreakerStep::Pass { lease: lease.clone() };
        stepped(keeper, circuit, step, clock).await.map_or(Passage::Free, |stepped| stepped.passage)
    }

    /// Counts a failed call of a job; returns the time until which the breaker is open, when this failure
    /// opened it.
    pub async fn failed(
        &self,
        _: Secured<'_>,
        clock: &dyn Clock,
        circuit: &Circuit,
        job: &JobId,
    ) -> Option<Timestamp> {
        let keeper = self.keeper(circuit)?;
        let successes = self.known().successes.remove(&circuit.key).unwrap_or_default().successes;
        let step = BreakerStep::Failed { job: job.0.clone(), successes };
        let stepped = stepped(keeper, circuit, step, clock).await?;
        self.known().troubled.insert(circuit.key.clone());
        stepped.opened_until
    }

    /// Counts a successful call of a job, without waiting. While the service works, the store learns of
    /// successes with the next failure. Otherwise it returns the step that [`BreakerWatch::store_success`] stores.
    #[must_use = "the store has to learn of it"]
    pub fn succeeded(&self, circuit: Circuit, job: &JobId, passage: Passage) -> Option<Success> {
        self.keeper(&circuit)?;
        if passage == Passage::Trial {
            return Some(Success { circuit, step: BreakerStep::TrialSucceeded { job: job.0.clone() } });
        }
        let successes = {
            let mut known = self.known();
            let troubled = known.troubled.contains(&circuit.key);
            let tally = known.successes.entry(circuit.key.clone()).or_default();
            tally.successes = tally.successes.saturating_add(1);
            let since = *tally.since.get_or_insert_with(Instant::now);
            // A success among consecutive failures counts at once; among many calls successes are counted
            // together.
            let due = circuit.rule.failure_share >= 100 || since.elapsed() >= LOOK;
            if !(troubled && due) {
                return None;
            }
            known.successes.remove(&circuit.key).unwrap_or_default().successes
        };
        Some(Success { circuit, step: BreakerStep::Succeeded { successes } })
    }

    /// Stores a success.
    pub async fn store_success(&self, _: Secured<'_>, clock: &dyn Clock, success: Success) {
        let Success { circuit, step } = success;
        let Some(keeper) = self.keeper(&circuit) else { return };
        let is_trial = matches!(step, BreakerStep::TrialSucceeded { .. });
        stepped(keeper, &circuit, step, clock).await;
        if is_trial {
            // The next call reads if this closed it.
            self.known().looked = None;
        }
    }

    /// Returns the place of a trial call that did not run, or that reveals nothing about the service.
    pub async fn not_made(&self, _: Secured<'_>, clock: &dyn Clock, circuit: &Circuit, job: &JobId) {
        if let Some(keeper) = self.keeper(circuit) {
            stepped(keeper, circuit, BreakerStep::TrialNotMade { job: job.0.clone() }, clock).await;
        }
    }

    /// Reads all of them. During another read the previous view is used. A worker
    /// that has just begun has none, so its first calls wait for the first read.
    async fn look(&self, keeper: &dyn Breakers) {
        let _looking = match self.looking.try_lock() {
            Ok(looking) => looking,
            Err(_) if self.known().looked.is_some() => return,
            Err(_) => self.looking.lock().await,
        };
        if self.is_fresh() {
            return;
        }
        let troubled = logged(keeper.troubled().await);
        let mut known = self.known();
        known.looked = Some(Instant::now());
        if let Some(troubled) = troubled {
            known.troubled = troubled.into_iter().map(|trouble| trouble.key).collect();
            let Known { troubled, announced, .. } = &mut *known;
            announced.retain(|key| {
                let is_open = troubled.contains(key);
                if !is_open {
                    tracing::info!(breaker = key.name(), "circuit breaker closed");
                }
                is_open
            });
        }
    }

    /// Returns true when an opening is to be logged: once until the breaker closes, however many trial calls fail.
    pub fn is_new(&self, key: &BreakerKey) -> bool {
        self.known().announced.insert(key.clone())
    }

    fn is_fresh(&self) -> bool {
        self.known().looked.is_some_and(|at| at.elapsed() < LOOK)
    }
}

async fn stepped(
    keeper: &dyn Breakers,
    Circuit { key, rule }: &Circuit,
    step: BreakerStep,
    clock: &dyn Clock,
) -> Option<Stepped> {
    logged(keeper.step(key, rule, step, clock.now()).await)
}

fn logged<T>(outcome: Result<T, StoreError>) -> Option<T> {
    outcome
        .inspect_err(|error| tracing::debug!(%error, "the circuit breakers cannot be asked; calls are made"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use turnstone_store::breakers::Trouble;

    #[test]
    fn numbers_that_no_breaker_can_have_are_refused() {
        let read = |text: &str| serde_json::from_str::<BreakerConfig>(text).unwrap().check();
        assert_eq!(
            read(r#"{"failure_threshold": 1, "failure_share": 100, "half_open_requests": 3}"#),
            Ok(())
        );
        for (text, words) in [
            (r#"{"failure_threshold": 0}"#, "breaker.failure_threshold: must be between 1 and 1000 (got 0)"),
            (r#"{"failure_share": 101}"#, "breaker.failure_share: must be between 1 and 100 (got 101)"),
            (r#"{"half_open_requests": 0}"#, "breaker.half_open_requests"),
        ] {
            assert!(read(text).unwrap_err().contains(words), "{text}");
        }
    }

    /// The breakers that other processes open, and the times at which this process read them.
    #[derive(Default)]
    struct SharedBreakers {
        open: Mutex<Vec<Trouble>>,
        reads: Mutex<Vec<Instant>>,
    }

    #[async_trait]
    impl Breakers for SharedBreakers {
        async fn troubled(&self) -> Result<Vec<Trouble>, StoreError> {
            self.reads.lock().unwrap().push(Instant::now());
            Ok(self.open.lock().unwrap().clone())
        }

        async fn reset(&self, _: &BreakerKey, _: Timestamp) -> Result<bool, StoreError> {
            Ok(false)
        }

        async fn step(
            &self,
            key: &BreakerKey,
            _: &Breaker,
            _: BreakerStep,
            _: Timestamp,
        ) -> Result<Stepped, StoreError> {
            let open = self.open.lock().unwrap().iter().find_map(|trouble| {
                Some(trouble).filter(|trouble| trouble.key == *key).and_then(|trouble| trouble.open_until)
            });
            let passage = open.map_or(Passage::Free, |until| Passage::Refused { until });
            Ok(Stepped { passage, opened_until: None })
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
        let shared = Arc::new(SharedBreakers::default());
        let watch = BreakerWatch::new(Arc::clone(&shared) as Arc<dyn Breakers>);
        let circuit = Circuit { key: BreakerKey::model("test", "m"), rule: Breaker::default() };
        let lease = Lease { job: JobId("a".to_owned()), token: "t".to_owned(), expires_at: Noon.now() };
        let pass = async || watch.pass(Secured::assumed(), &Noon, &circuit, &lease).await;
        assert_eq!(pass().await, Passage::Free);
        let until = Noon.now().plus_ms(60_000);
        *shared.open.lock().unwrap() =
            vec![Trouble { key: circuit.key.clone(), failures: 5, open_until: Some(until) }];
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
