//! Queues as operators see them: paused, bounded, limited, weighted.

use super::ops::queues as ops;
use super::rows::{self, Fields, Inconsistency, get};
use super::session::{Arg, Args, Row};
use super::statement::decode_all;
use super::views::{all, many, many_by_keys};
use super::{Engine, limit_name};
use crate::sql::{self, Text};
use crate::{Page, StoreError};
use async_recursion::async_recursion as boxed;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
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
    /// True when no job of it is claimed.
    pub paused: bool,
    /// The members that operators set, as sent: `backpressure`, `concurrency`, `rate_limit`, `retention`,
    /// `attest_policy`.
    pub config: Map<String, Value>,
    /// The limits that are enforced, and those that jobs named.
    pub limits: QueueLimits,
    /// The pool it is in.
    pub pool: Option<String>,
    /// Its weight there.
    pub weight: i64,
    /// When it became known; `None` for those that were there from the beginning.
    pub created_at: Option<Timestamp>,
}

/// The limits that are enforced for a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueLimits {
    /// At most this many jobs wait: available, scheduled and retryable ones.
    pub max_depth: Option<i64>,
    /// The payloads of waiting jobs have at most this many bytes together.
    pub max_bytes: Option<i64>,
    /// The number of waiting jobs from which pushes report how full the queue is.
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

/// A change of a queue by an operator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ConfigChange {
    /// Members of the configuration in place of those of the same name; `null` takes one away.
    pub members: Map<String, Value>,
    /// The limits that these members mean; `None` leaves the enforced limits as they are.
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

/// A queue's share of its pool's claims.
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
    /// True when an operator's limit replaces the one that jobs name.
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

/// A row of `queues`.
pub(super) fn queue(row: &impl Fields) -> Result<Queue, Inconsistency> {
    let config =
        get::<Option<&str>>(row, "config")?.is_some().then(|| rows::json(row, "config")).transpose()?;
    Ok(Queue {
        name: get(row, "name")?,
        paused: get(row, "paused")?,
        config: config.unwrap_or_default(),
        limits: QueueLimits {
            max_depth: get(row, "max_depth")?,
            max_bytes: get(row, "max_bytes")?,
            warn_at: get(row, "warn_at")?,
            concurrency: get(row, "concurrency")?,
            rate: rate(row)?,
            throttle_ms: get(row, "throttle_ms")?,
            retention: Retention {
                completed_ms: get(row, "keep_completed_ms")?,
                discarded_ms: get(row, "keep_discarded_ms")?,
                cancelled_ms: get(row, "keep_cancelled_ms")?,
            },
        },
        pool: get(row, "pool")?,
        weight: get(row, "weight")?,
        created_at: Some(get(row, "created_at")?).filter(|at| *at > Timestamp(0)),
    })
}

fn rate(row: &impl Fields) -> Result<Option<Rate>, Inconsistency> {
    let rate = get::<Option<i64>>(row, "rate")?.zip(get(row, "period_ms")?);
    Ok(rate.map(|(limit, period_ms)| Rate { limit, period_ms }))
}

fn limit(row: &impl Fields) -> Result<Limit, Inconsistency> {
    let stored: String = get(row, "name")?;
    let (tenant, name) = limit_name::parted(&stored);
    Ok(Limit {
        name: name.to_owned(),
        tenant: tenant.map(str::to_owned),
        overridden: get(row, "overridden")?,
        concurrency: get(row, "concurrency")?,
        rate: rate(row)?,
        throttle_ms: get(row, "throttle_ms")?,
        active: get(row, "active")?,
        waiting: get(row, "waiting_count")?,
        window_at: get(row, "window_at")?,
        started: get(row, "started")?,
        next_at: get(row, "next_at")?,
    })
}

fn strategy(row: &impl Fields) -> Result<PoolStrategy, Inconsistency> {
    get::<PoolStrategy>(row, "strategy")
}

/// Queues as operators see them: paused, bounded, limited, weighted.
#[derive(Clone)]
pub struct Queues(pub(super) Arc<Engine>);

impl Queues {
    /// One queue.
    #[boxed]
    pub async fn queue(&self, name: &str) -> Result<Option<Queue>, StoreError> {
        Ok(self.queue_rows(&sql::SELECT_QUEUE_BY_NAME, &[name.into()], queue).await?.pop())
    }

    /// Queues by name, and how many there are; with a tenant only those in which it has a job.
    #[boxed]
    pub async fn page(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<Queue>, u64), StoreError> {
        let values = [page.limit.into(), page.offset.into(), tenant.into()];
        let queues = many(&self.0.readers, "list queues", &sql::SELECT_QUEUES_PAGE, &values, queue).await?;
        let decode = |row: &Row| get::<i64>(row, "queues");
        let total = self.queue_rows(&sql::SELECT_QUEUE_TOTAL, &[tenant.into()], decode).await?;
        Ok((queues, total.into_iter().next().unwrap_or_default().unsigned_abs()))
    }

    /// Jobs of these queues per state; with a tenant only its own.
    #[boxed]
    pub async fn counts(
        &self,
        queues: &[String],
        tenant: Option<&str>,
    ) -> Result<Vec<(String, JobState, u64)>, StoreError> {
        let values = [tenant.into()];
        let keys = (queues.to_vec(), values.as_slice());
        many_by_keys(&self.0.readers, "count jobs", &sql::SELECT_QUEUE_COUNTS, keys, |row| {
            let jobs: i64 = get(row, "jobs")?;
            Ok((get(row, "queue")?, get::<JobState>(row, "state")?, jobs.unsigned_abs()))
        })
        .await
    }

    /// Jobs of these queues that ended from `since` on, per state; with a tenant only its own.
    #[boxed]
    pub async fn ended(
        &self,
        queues: &[String],
        tenant: Option<&str>,
        since: Timestamp,
    ) -> Result<Vec<(String, JobState, u64)>, StoreError> {
        let values = [tenant.into(), since.0.into()];
        let keys = (queues.to_vec(), values.as_slice());
        many_by_keys(&self.0.readers, "count ended jobs", &sql::SELECT_QUEUE_ENDED_COUNTS, keys, |row| {
            let jobs: i64 = get(row, "jobs")?;
            Ok((get(row, "queue")?, get::<JobState>(row, "state")?, jobs.unsigned_abs()))
        })
        .await
    }

    /// Pauses or resumes a queue, which is created if it is unknown. Returns true when that changed anything.
    #[boxed]
    pub async fn pause(&self, name: &str, paused: bool, now: Timestamp) -> Result<bool, StoreError> {
        self.0
            .write((name.to_owned(), paused, now), |tx, (name, paused, now)| {
                Box::pin(ops::pause(&mut tx.session, &mut tx.unit, name, *paused, *now))
            })
            .await
    }

    /// Changes the settings of a queue, which is created if it is unknown. Returns true when it is new.
    #[boxed]
    pub async fn configure(
        &self,
        name: &str,
        change: ConfigChange,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.0
            .write((name.to_owned(), change, now), |tx, (name, change, now)| {
                Box::pin(ops::configure(&mut tx.session, &mut tx.unit, name, change, *now))
            })
            .await
    }

    /// Sets a pool. A queue that was in another pool leaves it. Returns whether the pool is new.
    #[boxed]
    pub async fn set_pool(&self, pool: Pool, now: Timestamp) -> Result<bool, StoreError> {
        self.0
            .write((pool, now), |tx, (pool, now)| Box::pin(ops::set_pool(&mut tx.session, pool, *now)))
            .await
    }

    /// The pools by name; or the one of this name.
    #[boxed]
    pub async fn pools(&self, name: Option<&str>) -> Result<Vec<Pool>, StoreError> {
        let decode = |row: &Row| {
            let config = rows::json(row, "config")?;
            Ok(Pool { name: get(row, "name")?, strategy: strategy(row)?, config, queues: Vec::new() })
        };
        let (readers, action, text) = (&self.0.readers, "list pools", &sql::SELECT_POOLS);
        let mut pools = match name {
            Some(_) => all(readers, action, text, &[name.into()], decode).await?,
            None => many(readers, action, text, &[name.into()], decode).await?,
        };
        let mut members: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
        for share in self.shares().await? {
            members.entry(share.pool).or_default().push((share.queue, share.weight));
        }
        for pool in &mut pools {
            pool.queues = members.remove(&pool.name).unwrap_or_default();
        }
        Ok(pools)
    }

    /// Returns the shares of the queues of all pools. Those that cannot be read are left out.
    #[boxed]
    pub async fn shares(&self) -> Result<Vec<Share>, StoreError> {
        let decode = |row: &Row| {
            Ok(Share {
                pool: get(row, "pool")?,
                strategy: strategy(row)?,
                queue: get(row, "name")?,
                weight: get(row, "weight")?,
                claims: get(row, "claims")?,
                since: get(row, "updated_at")?,
            })
        };
        many(&self.0.readers, "list shares", &sql::SELECT_SHARES, &[], decode).await
    }

    /// Limits that jobs name, by key, and how many there are; with a tenant only its own.
    #[boxed]
    pub async fn limits(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<Limit>, u64), StoreError> {
        let own = tenant.map(|tenant| limit_name::stored(Some(tenant), ""));
        let own = own.as_deref();
        let values = [None::<&str>.into(), page.limit.into(), page.offset.into(), own.into()];
        let limits = many(&self.0.readers, "list limits", &sql::SELECT_RATE_KEYS, &values, limit).await?;
        let decode = |row: &Row| get::<i64>(row, "keys");
        let total = self.queue_rows(&sql::SELECT_RATE_KEY_TOTAL, &[own.into()], decode).await?;
        Ok((limits, total.into_iter().next().unwrap_or_default().unsigned_abs()))
    }

    /// The limit that jobs of this tenant, or of none, name by this key.
    #[boxed]
    pub async fn limit(&self, tenant: Option<&str>, key: &str) -> Result<Option<Limit>, StoreError> {
        let key = limit_name::stored(tenant, key);
        let values = [key.as_str().into(), 1_i64.into(), 0_i64.into(), None::<&str>.into()];
        Ok(self.queue_rows(&sql::SELECT_RATE_KEYS, &values, limit).await?.pop())
    }

    /// The limit of a queue; `None` when it has none.
    #[boxed]
    pub async fn limit_of_queue(&self, queue: &str) -> Result<Option<Limit>, StoreError> {
        let found = self.queue_rows(&sql::SELECT_QUEUE_LIMIT, &[queue.into()], limit).await?.pop();
        let limits = |limit: &Limit| {
            limit.concurrency.is_some() || limit.rate.is_some() || limit.throttle_ms.is_some()
        };
        Ok(found.filter(limits))
    }

    /// Puts a limit in place of the one that jobs name, or (`None`) takes it away again. Returns whether there was one
    /// to be replaced.
    #[boxed]
    pub async fn override_limit(
        &self,
        tenant: Option<&str>,
        key: &str,
        limit: Option<RateLimit>,
    ) -> Result<bool, StoreError> {
        self.0
            .write((limit_name::stored(tenant, key), limit), |tx, (key, limit)| {
                Box::pin(ops::override_limit(&mut tx.session, &mut tx.unit, key, limit.as_ref()))
            })
            .await
    }

    async fn queue_rows<T>(
        &self,
        text: &Text,
        args: &[Arg<'_>],
        decode: fn(&Row) -> Result<T, Inconsistency>,
    ) -> Result<Vec<T>, StoreError> {
        decode_all(&self.0.readers.read("read queues", text, Args::Values(args)).await?, decode)
    }
}
