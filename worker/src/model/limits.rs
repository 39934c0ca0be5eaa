//! Rate limits of models: finds the limit of a call, and waits until the call may be made.

use crate::model::Providers;
use crate::state::secured::Secured;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use turnstone_domain::retry::MAX_RETRY_AFTER_MS;
use turnstone_domain::{Clock, Timestamp};
use turnstone_store::StoreError;
use turnstone_store::limits::{Admission, Grant, Limit, LimitKey, RateLimits};

/// The name for every model of a provider that has no section of its own.
const EVERY_MODEL: &str = "*";
/// The interval at which a waiting call asks again: tokens that other calls did not use may return early.
const LOOK: Duration = Duration::from_secs(1);

/// A section `[limits."<provider>/<model>"]`; `*` means every other model of the provider.
///
/// ```toml
/// [limits."openai/gpt-4o"]
/// requests_per_minute = 500
/// tokens_per_minute = 30_000
///
/// [limits."local/*"]
/// requests_per_minute = 60
/// ```
///
/// Each tenant (`meta.tenant_id` of a job) has separate buckets for each model. A section without numbers
/// only applies the provider's `Retry-After` to every worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitConfig {
    /// Calls per minute of the whole fleet.
    pub requests_per_minute: Option<u64>,
    /// Tokens per minute of the whole fleet, prompts and answers together.
    pub tokens_per_minute: Option<u64>,
}

/// The limits that this worker keeps to. By default there are none, and they cost nothing.
#[derive(Default)]
pub struct ModelLimits {
    by_model: HashMap<String, HashMap<String, Limit>>,
    keeper: Option<Arc<dyn RateLimits>>,
    /// One line per bucket for the waiting calls of this process: the first call asks, the others wait behind
    /// it.
    lines: Mutex<HashMap<LimitKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// A call that asks to be made.
#[derive(Clone, Copy, Debug)]
pub struct LimitedCall<'a> {
    /// The provider.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// The tenant of the job; empty if it has none.
    pub tenant: &'a str,
    /// The most tokens it may use.
    pub tokens: i64,
    /// The longest wait for a provider that demanded a delay from all callers.
    pub patience: Duration,
}

/// The right to make one call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    key: LimitKey,
    limit: Limit,
    grant: Grant,
}

/// The reason why a call may not be made.
#[derive(Debug)]
pub enum LimitRefusal {
    /// The provider demanded a delay until this time, which is longer than the call may wait.
    Held(Timestamp),
    /// The limits could not be read.
    Store(StoreError),
}

impl ModelLimits {
    /// Reads the limits of the configuration; `keeper` stores their state.
    ///
    /// # Errors
    /// A sentence that names the section that is wrong.
    pub fn from_config(
        configs: &BTreeMap<String, LimitConfig>,
        providers: &Providers,
        keeper: Arc<dyn RateLimits>,
    ) -> Result<Self, String> {
        let mut by_model: HashMap<String, HashMap<String, Limit>> = HashMap::new();
        for (name, config) in configs {
            let wrong = |problem: &str| Err(format!("[limits.\"{name}\"] {problem}"));
            let Some((provider, model)) = name.split_once('/').filter(|(_, model)| !model.is_empty()) else {
                return wrong(
                    "names no model; write it \"provider/model\", or \"provider/*\" for every other model",
                );
            };
            if !providers.knows(provider) {
                return wrong(&format!(
                    "provider `{provider}` is not configured; add [providers.{provider}]"
                ));
            }
            let LimitConfig { requests_per_minute, tokens_per_minute } = *config;
            if [requests_per_minute, tokens_per_minute].contains(&Some(0)) {
                return wrong("a limit of 0 would let nothing through; leave it out, or give at least 1");
            }
            let limit = Limit { requests_per_minute, tokens_per_minute };
            by_model.entry(provider.to_owned()).or_default().insert(model.to_owned(), limit);
        }
        Ok(Self { by_model, keeper: Some(keeper), lines: Mutex::default() })
    }

    /// Returns the limit of a call.
    fn of(&self, call: &LimitedCall<'_>) -> Option<(Limit, &dyn RateLimits)> {
        let models = self.by_model.get(call.provider)?;
        let limit = models.get(call.model).or_else(|| models.get(EVERY_MODEL))?;
        Some((*limit, self.keeper.as_deref()?))
    }

    /// Waits until the call may be made; `None` when no limit applies to it. Dropping the future ends the
    /// wait; a waiting call holds nothing.
    ///
    /// # Errors
    /// [`LimitRefusal`].
    pub async fn enter(
        &self,
        _: Secured<'_>,
        clock: &dyn Clock,
        call: LimitedCall<'_>,
    ) -> Result<Option<Pass>, LimitRefusal> {
        let Some((limit, keeper)) = self.of(&call) else { return Ok(None) };
        let key = LimitKey::new(call.provider, call.model, call.tenant);
        let place = LinePlace::at_the_end(self, &key);
        let _first = place.line.lock().await;
        let mut reported = false;
        loop {
            let now = clock.now();
            let (until, held) = match keeper.admit(&key, &limit, call.tokens, now).await {
                Ok(Admission::Granted(grant)) => {
                    return Ok(Some(Pass { key: key.clone(), limit, grant }));
                }
                Ok(Admission::Wait { until, held }) => (until, held),
                Err(error) => return Err(LimitRefusal::Store(error)),
            };
            let wait = Duration::from_millis(u64::try_from(until.since(now)).unwrap_or(0).max(1));
            if held && wait > call.patience {
                return Err(LimitRefusal::Held(until));
            }
            if !std::mem::replace(&mut reported, true) {
                let LimitedCall { provider, model, tenant, .. } = call;
                tracing::debug!(provider, model, tenant, %until, held, "a call waits for its rate limit");
            }
            tokio::time::sleep(wait.min(LOOK)).await;
        }
    }

    /// Records the tokens that a call really used.
    pub async fn settle(&self, _: Secured<'_>, clock: &dyn Clock, pass: &Pass, used: i64) {
        let Some(keeper) = &self.keeper else { return };
        let Pass { key, limit, grant } = pass;
        if let Err(error) = keeper.settle(key, limit, *grant, used, clock.now()).await {
            tracing::debug!(%error, "a rate limit was not settled; what is missing fills up by itself");
        }
    }

    /// Makes every worker wait as long as the provider demanded, up to a bound.
    pub async fn hold(&self, _: Secured<'_>, clock: &dyn Clock, pass: &Pass, wait_ms: u64) {
        let Some(keeper) = &self.keeper else { return };
        let now = clock.now();
        let wait_ms = i64::try_from(wait_ms.min(MAX_RETRY_AFTER_MS)).unwrap_or(i64::MAX);
        let until = now.plus_ms(wait_ms);
        if let Err(error) = keeper.hold(&pass.key, until, now).await {
            tracing::debug!(%error, "other workers were not notified of the delay that the provider demands");
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<LimitKey, Arc<tokio::sync::Mutex<()>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the line of a bucket. The last call to leave removes the line.
struct LinePlace<'a> {
    limits: &'a ModelLimits,
    key: &'a LimitKey,
    line: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> LinePlace<'a> {
    fn at_the_end(limits: &'a ModelLimits, key: &'a LimitKey) -> Self {
        let line = Arc::clone(limits.lines().entry(key.clone()).or_default());
        Self { limits, key, line }
    }
}

impl Drop for LinePlace<'_> {
    fn drop(&mut self) {
        let mut lines = self.limits.lines();
        // The table holds one reference and this place the other.
        if Arc::strong_count(&self.line) <= 2 {
            lines.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted::NoopModel;
    use futures::FutureExt;
    use std::sync::atomic::{AtomicI64, Ordering};
    use turnstone_store::limits::LocalLimits;

    #[derive(Default)]
    struct Hands(AtomicI64);

    impl Clock for Hands {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::SeqCst))
        }
    }

    fn limits(sections: &[(&str, LimitConfig)]) -> Result<ModelLimits, String> {
        let mut providers = Providers::default();
        providers.insert("p", Arc::new(NoopModel::default()));
        let configs = sections.iter().map(|(name, config)| ((*name).to_owned(), *config)).collect();
        ModelLimits::from_config(&configs, &providers, Arc::new(LocalLimits::one_of(1)))
    }

    fn per_minute(requests: u64) -> LimitConfig {
        LimitConfig { requests_per_minute: Some(requests), ..LimitConfig::default() }
    }

    fn call<'a>(model: &'a str, tenant: &'a str) -> LimitedCall<'a> {
        LimitedCall { provider: "p", model, tenant, tokens: 1, patience: Duration::from_secs(5) }
    }

    #[test]
    fn sections_that_cannot_work_are_named() {
        for (name, config, word) in [
            ("p", per_minute(1), "provider/model"),
            ("p/", per_minute(1), "provider/model"),
            ("q/m", per_minute(1), "[providers.q]"),
            ("p/m", per_minute(0), "at least 1"),
        ] {
            let problem = limits(&[(name, config)]).err().expect(name);
            assert!(problem.contains(name) && problem.contains(word), "{problem}");
        }
    }

    #[tokio::test]
    async fn a_call_is_counted_where_its_section_says() {
        let clock = Hands::default();
        let limits = limits(&[("p/*", per_minute(1)), ("p/fast/er", per_minute(12))]).unwrap();
        let enters = |call| limits.enter(Secured::assumed(), &clock, call).now_or_never();
        for (model, tenant, times) in
            [("fast/er", "", 2), ("slow", "", 1), ("slow", "t", 1), ("slower", "", 1)]
        {
            for _ in 0..times {
                assert!(matches!(enters(call(model, tenant)), Some(Ok(Some(_)))), "{model} {tenant}");
            }
            assert!(enters(call(model, tenant)).is_none(), "{model} {tenant} has to wait");
        }
        let unlimited = LimitedCall { provider: "other", ..call("slow", "") };
        assert!(matches!(enters(unlimited), Some(Ok(None))));
        assert!(limits.lines().is_empty(), "no call waits any more");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_calls_are_admitted_by_the_clock_and_in_order() {
        let clock = Arc::new(Hands::default());
        let limits = Arc::new(limits(&[("p/m", per_minute(1))]).unwrap());
        limits.enter(Secured::assumed(), &*clock, call("m", "")).await.unwrap();
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let (limits, clock) = (Arc::clone(&limits), Arc::clone(&clock));
                tokio::spawn(
                    async move { limits.enter(Secured::assumed(), &*clock, call("m", "")).await.is_ok() },
                )
            })
            .collect();
        let mut waiting = waiting.into_iter();
        let (first, second) = (waiting.next().unwrap(), waiting.next().unwrap());
        clock.0.store(60_000, Ordering::SeqCst);
        assert!(first.await.unwrap());
        assert!(!second.is_finished());
        clock.0.store(120_000, Ordering::SeqCst);
        assert!(second.await.unwrap());
        assert!(limits.lines().is_empty());
    }

    #[tokio::test]
    async fn a_hold_that_is_too_long_is_not_waited_for() {
        let clock = Hands::default();
        let limits = limits(&[("p/m", LimitConfig::default())]).unwrap();
        let pass = limits.enter(Secured::assumed(), &clock, call("m", "a")).await.unwrap().unwrap();
        limits.hold(Secured::assumed(), &clock, &pass, 5_001).await;
        let refused = limits.enter(Secured::assumed(), &clock, call("m", "b")).await;
        assert!(
            matches!(refused, Err(LimitRefusal::Held(until)) if until == Timestamp(5_001)),
            "{refused:?}"
        );
        clock.0.store(1, Ordering::SeqCst);
        assert!(
            limits.enter(Secured::assumed(), &clock, call("m", "b")).now_or_never().is_none(),
            "now it can be waited for"
        );
        limits.hold(Secured::assumed(), &clock, &pass, u64::MAX).await;
        let refused = limits.enter(Secured::assumed(), &clock, call("m", "b")).await;
        assert!(
            matches!(refused, Err(LimitRefusal::Held(until)) if until == Timestamp(3_600_001)),
            "{refused:?}"
        );
    }
}
