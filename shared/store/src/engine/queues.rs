//! Queues as operators see them: paused, bounded, limited, weighted: the calls.

use super::columns::Columns;
use super::ops::queues::{Answer, Request};
use super::rows::{self, Fields, Inconsistency, get, maybe, time};
use super::session::{Arg, Args, Reader};
use super::statement::decode_all;
use super::writer;
use super::{Engine, limit_name};
use crate::sql::{self, Text};
use crate::{
    ConfigChange, Limit, Page, Pool, PoolStrategy, Queue, QueueLimits, Queues, Retention, Share, StoreError,
};
use async_trait::async_trait;
use std::collections::BTreeMap;
use turnstone_domain::terms::{Rate, RateLimit};
use turnstone_domain::{JobState, Timestamp};

impl<R: Reader> Engine<R> {
    async fn queue_rows<T>(
        &self,
        text: &Text,
        args: &[Arg<'_>],
        decode: fn(&R::Row) -> Result<T, Inconsistency>,
    ) -> Result<Vec<T>, StoreError> {
        decode_all(&self.readers.read("read queues", text, Args::Values(args)).await?, decode)
    }

    async fn change(&self, request: Request) -> Result<bool, StoreError> {
        match self.request(writer::Request::Queues(request)).await? {
            writer::Answer::Queues(Answer(done)) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }
}

/// A row of `queues`.
pub(super) fn queue(row: &impl Fields) -> Result<Queue, Inconsistency> {
    let config = maybe::<&str>(row, "config")?.is_some().then(|| rows::json(row, "config")).transpose()?;
    Ok(Queue {
        name: get(row, "name")?,
        paused: get(row, "paused")?,
        config: config.unwrap_or_default(),
        limits: QueueLimits {
            max_depth: maybe(row, "max_depth")?,
            max_bytes: maybe(row, "max_bytes")?,
            warn_at: maybe(row, "warn_at")?,
            concurrency: maybe(row, "concurrency")?,
            rate: rate(row)?,
            throttle_ms: maybe(row, "throttle_ms")?,
            retention: Retention {
                completed_ms: maybe(row, "keep_completed_ms")?,
                discarded_ms: maybe(row, "keep_discarded_ms")?,
                cancelled_ms: maybe(row, "keep_cancelled_ms")?,
            },
        },
        pool: maybe(row, "pool")?,
        weight: get(row, "weight")?,
        created_at: Some(time(row, "created_at")?).filter(|at| *at > Timestamp(0)),
    })
}

fn rate(row: &impl Fields) -> Result<Option<Rate>, Inconsistency> {
    let rate = maybe(row, "rate")?.zip(maybe(row, "period_ms")?);
    Ok(rate.map(|(limit, period_ms)| Rate { limit, period_ms }))
}

fn limit(row: &impl Fields) -> Result<Limit, Inconsistency> {
    let stored: String = get(row, "name")?;
    let (tenant, name) = limit_name::parted(&stored);
    Ok(Limit {
        name: name.to_owned(),
        tenant: tenant.map(str::to_owned),
        overridden: get(row, "overridden")?,
        concurrency: maybe(row, "concurrency")?,
        rate: rate(row)?,
        throttle_ms: maybe(row, "throttle_ms")?,
        active: get(row, "active")?,
        waiting: get(row, "waiting_count")?,
        window_at: time(row, "window_at")?,
        started: get(row, "started")?,
        next_at: time(row, "next_at")?,
    })
}

fn strategy(row: &impl Fields) -> Result<PoolStrategy, Inconsistency> {
    rows::word(row, "strategy", PoolStrategy::parse)
}

#[async_trait]
impl<R: Reader> Queues for Engine<R> {
    async fn queue(&self, name: &str) -> Result<Option<Queue>, StoreError> {
        Ok(self.queue_rows(&sql::SELECT_QUEUE_BY_NAME, &[name.into()], queue).await?.pop())
    }

    async fn page(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<Queue>, u64), StoreError> {
        let values = [page.limit.into(), page.offset.into(), tenant.into()];
        let queues = self.queue_rows(&sql::SELECT_QUEUES_PAGE, &values, queue).await?;
        let decode = |row: &R::Row| get::<i64>(row, "queues");
        let total = self.queue_rows(&sql::SELECT_QUEUE_TOTAL, &[tenant.into()], decode).await?;
        Ok((queues, total.into_iter().next().unwrap_or_default().unsigned_abs()))
    }

    async fn counts(
        &self,
        queues: &[String],
        tenant: Option<&str>,
    ) -> Result<Vec<(String, JobState, u64)>, StoreError> {
        let keys = Columns::of(queues.iter().map(|name| (name.clone(),)).collect());
        let tenant = [tenant.into()];
        let rows =
            self.readers.read("count jobs", &sql::SELECT_QUEUE_COUNTS, Args::Rows(keys, &tenant)).await?;
        decode_all(&rows, |row| {
            let jobs: i64 = get(row, "jobs")?;
            Ok((get(row, "queue")?, rows::word(row, "state", JobState::parse)?, jobs.unsigned_abs()))
        })
    }

    async fn pause(&self, name: &str, paused: bool, now: Timestamp) -> Result<bool, StoreError> {
        self.change(Request::Pause { name: name.to_owned(), paused, now }).await
    }

    async fn configure(&self, name: &str, change: ConfigChange, now: Timestamp) -> Result<bool, StoreError> {
        self.change(Request::Configure { name: name.to_owned(), change: Box::new(change), now }).await
    }

    async fn set_pool(&self, pool: Pool, now: Timestamp) -> Result<bool, StoreError> {
        self.change(Request::SetPool { pool: Box::new(pool), now }).await
    }

    async fn pools(&self, name: Option<&str>) -> Result<Vec<Pool>, StoreError> {
        let decode = |row: &R::Row| {
            let config = rows::json(row, "config")?;
            Ok(Pool { name: get(row, "name")?, strategy: strategy(row)?, config, queues: Vec::new() })
        };
        let mut pools = self.queue_rows(&sql::SELECT_POOLS, &[name.into()], decode).await?;
        let mut members: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
        for share in self.shares().await? {
            members.entry(share.pool).or_default().push((share.queue, share.weight));
        }
        for pool in &mut pools {
            pool.queues = members.remove(&pool.name).unwrap_or_default();
        }
        Ok(pools)
    }

    async fn shares(&self) -> Result<Vec<Share>, StoreError> {
        let decode = |row: &R::Row| {
            Ok(Share {
                pool: get(row, "pool")?,
                strategy: strategy(row)?,
                queue: get(row, "name")?,
                weight: get(row, "weight")?,
                claims: get(row, "claims")?,
                since: time(row, "updated_at")?,
            })
        };
        self.queue_rows(&sql::SELECT_SHARES, &[], decode).await
    }

    async fn limits(&self, tenant: Option<&str>, page: Page) -> Result<(Vec<Limit>, u64), StoreError> {
        let own = tenant.map(|tenant| limit_name::stored(Some(tenant), ""));
        let own = own.as_deref();
        let values = [None::<&str>.into(), page.limit.into(), page.offset.into(), own.into()];
        let limits = self.queue_rows(&sql::SELECT_RATE_KEYS, &values, limit).await?;
        let decode = |row: &R::Row| get::<i64>(row, "keys");
        let total = self.queue_rows(&sql::SELECT_RATE_KEY_TOTAL, &[own.into()], decode).await?;
        Ok((limits, total.into_iter().next().unwrap_or_default().unsigned_abs()))
    }

    async fn limit(&self, tenant: Option<&str>, key: &str) -> Result<Option<Limit>, StoreError> {
        let key = limit_name::stored(tenant, key);
        let values = [key.as_str().into(), 1_i64.into(), 0_i64.into(), None::<&str>.into()];
        Ok(self.queue_rows(&sql::SELECT_RATE_KEYS, &values, limit).await?.pop())
    }

    async fn limit_of_queue(&self, queue: &str) -> Result<Option<Limit>, StoreError> {
        let found = self.queue_rows(&sql::SELECT_QUEUE_LIMIT, &[queue.into()], limit).await?.pop();
        let limits = |limit: &Limit| {
            limit.concurrency.is_some() || limit.rate.is_some() || limit.throttle_ms.is_some()
        };
        Ok(found.filter(limits))
    }

    async fn override_limit(
        &self,
        tenant: Option<&str>,
        key: &str,
        limit: Option<RateLimit>,
    ) -> Result<bool, StoreError> {
        self.change(Request::OverrideLimit { key: limit_name::stored(tenant, key), limit }).await
    }
}
