//! Queues as operators see them: paused, bounded, limited, weighted.

use crate::{Page, StoreError};
use async_trait::async_trait;
use serde_json::{Map, Value};
use turnstone_domain::terms::{Rate, RateLimit};
use turnstone_domain::{JobState, Timestamp};

/// How the queues of a pool share what claims it (OJS fair scheduling).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolStrategy {
    /// In proportion to their weights.
    Weighted,
    /// Equally.
    RoundRobin,
    /// The one with the greatest weight that has a job.
    Strict,
}

impl PoolStrategy {
    /// The strategy as in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weighted => "weighted",
            Self::RoundRobin => "round_robin",
            Self::Strict => "strict",
        }
    }

    /// Reads [`PoolStrategy::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Weighted, Self::RoundRobin, Self::Strict].into_iter().find(|known| known.as_str() == text)
    }
}

/// A queue.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Whether nothing in it is claimed.
    pub paused: bool,
    /// What operators set, as it was sent: `backpressure`, `concurrency`, `rate_limit`, `retention`, `attest_policy`.
    pub config: Map<String, Value>,
    /// What of it is enforced, and what jobs asked for.
    pub limits: QueueLimits,
    /// The pool it is in.
    pub pool: Option<String>,
    /// Its weight there.
    pub weight: i64,
    /// When it became known; `None` for those that were there from the beginning.
    pub created_at: Option<Timestamp>,
}

/// What is enforced for a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueLimits {
    /// At most this many jobs wait: available, scheduled and retryable ones.
    pub max_depth: Option<i64>,
    /// The payloads of waiting jobs have at most this many bytes together.
    pub max_bytes: Option<i64>,
    /// Clients are told how full the queue is from this many waiting jobs on.
    pub warn_at: Option<i64>,
    /// At most this many jobs are active.
    pub concurrency: Option<i64>,
    /// At most this many start per period.
    pub rate: Option<Rate>,
    /// The least time between two starts, in milliseconds.
    pub throttle_ms: Option<i64>,
    /// How long ended jobs are kept.
    pub retention: Retention,
}

/// How long ended jobs are kept, in milliseconds; `None` is as long as the fleet keeps all others (OJS queue configuration
/// §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retention {
    /// Completed ones.
    pub completed_ms: Option<i64>,
    /// Discarded ones, dead letters among them.
    pub discarded_ms: Option<i64>,
    /// Cancelled ones.
    pub cancelled_ms: Option<i64>,
}

/// What an operator changes of a queue.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ConfigChange {
    /// Members of the configuration in place of those of the same name; `null` takes one away.
    pub members: Map<String, Value>,
    /// What these members mean; `None` leaves what is enforced as it is.
    pub limits: Option<QueueLimits>,
}

/// A pool: queues that share what claims from several of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// How they share.
    pub strategy: PoolStrategy,
    /// As it was sent.
    pub config: Map<String, Value>,
    /// Its queues with their weights.
    pub queues: Vec<(String, i64)>,
}

/// What a queue of a pool got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The pool.
    pub pool: String,
    /// How its queues share.
    pub strategy: PoolStrategy,
    /// The queue.
    pub queue: String,
    /// Its weight.
    pub weight: i64,
    /// Jobs that were claimed from it.
    pub claims: i64,
    /// From when on they are counted: since the pool was set last.
    pub since: Timestamp,
}

/// A limit that jobs name by a key, or that of a queue, and what is used of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The key, or the queue.
    pub name: String,
    /// Whose key it is: tenants may use one word for different limits.
    pub tenant: Option<String>,
    /// Whether an operator's limit stands in place of the one that jobs name.
    pub overridden: bool,
    /// At most this many are active.
    pub concurrency: Option<i64>,
    /// At most this many start per period.
    pub rate: Option<Rate>,
    /// The least time between two starts, in milliseconds.
    pub throttle_ms: Option<i64>,
    /// How many are active.
    pub active: i64,
    /// How many are available and wait for it.
    pub waiting: i64,
    /// When the current window began.
    pub window_at: Timestamp,
    /// How many started in it.
    pub started: i64,
    /// Nothing starts before.
    pub next_at: Timestamp,
}

impl Limit {
    /// How many of [`Limit::rate`] are left at `now`, and when all of them are there again.
    #[must_use]
    pub fn window(&self, now: Timestamp) -> Option<(i64, Timestamp)> {
        let rate = self.rate?;
        let ends = self.window_at.plus_ms(rate.period_ms);
        Some(if now >= ends { (rate.limit, now) } else { ((rate.limit - self.started).max(0), ends) })
    }
}

/// Queues as operators see them: paused, bounded, limited, weighted.
#[async_trait]
pub trait Queues: Send + Sync + 'static {
    /// One queue.
    async fn queue(&self, name: &str) -> Result<Option<Queue>, StoreError>;

    /// Queues by name, and how many there are; with a tenant only those in which it has a job.
    async fn page(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<Queue>, u64), StoreError>;

    /// Jobs of these queues per state; with a tenant only its own.
    async fn counts(
        &self,
        queues: &[String],
        tenant: Option<&str>,
    ) -> Result<Vec<(String, JobState, u64)>, StoreError>;

    /// Pauses or resumes a queue; one that nobody knew is known from now on. Returns whether that changed anything.
    async fn pause(&self, name: &str, paused: bool, now: Timestamp) -> Result<bool, StoreError>;

    /// Changes what is set for a queue; one that nobody knew is known from now on. Returns whether it is new.
    async fn configure(&self, name: &str, change: ConfigChange, now: Timestamp) -> Result<bool, StoreError>;

    /// Sets a pool. A queue that was in another pool leaves it. Returns whether the pool is new.
    async fn set_pool(&self, pool: Pool, now: Timestamp) -> Result<bool, StoreError>;

    /// The pools by name; or the one of this name.
    async fn pools(&self, name: Option<&str>) -> Result<Vec<Pool>, StoreError>;

    /// What the queues of all pools got.
    async fn shares(&self) -> Result<Vec<Share>, StoreError>;

    /// Limits that jobs name, by key, and how many there are; with a tenant only its own.
    async fn limits(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<Limit>, u64), StoreError>;

    /// The limit that jobs of this tenant, or of none, name by this key.
    async fn limit(&self, tenant: Option<&str>, key: &str) -> Result<Option<Limit>, StoreError>;

    /// The limit of a queue; `None` when it has none.
    async fn limit_of_queue(&self, queue: &str) -> Result<Option<Limit>, StoreError>;

    /// Puts a limit in place of the one that jobs name, or (`None`) takes it away again. Returns whether there was one
    /// to be replaced.
    async fn override_limit(
        &self,
        tenant: Option<&str>,
        key: &str,
        limit: Option<RateLimit>,
    ) -> Result<bool, StoreError>;
}
