//! Limits that a fleet keeps in Redis: one script per step, which Redis runs alone.

use super::{connect, open};
use crate::StoreError;
use crate::limits::bucket::{Flow, Terms};
use crate::limits::{Admission, Grant, Limit, LimitKey, RateLimits};
use ::redis::aio::MultiplexedConnection;
use ::redis::{Client, FromRedisValue, Script, ScriptInvocation};
use async_trait::async_trait;
use tokio::sync::Mutex;
use turnstone_domain::Timestamp;

/// The prefix of the keys.
const PREFIX: &str = "turnstone:limit:";

/// The limits.
pub struct RedisLimits {
    client: Client,
    connection: Mutex<Option<MultiplexedConnection>>,
    bucket: Script,
    hold: Script,
}

impl RedisLimits {
    /// Limits kept in the Redis at `url`. It is connected to when it is needed, and again after a failure.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when this is no address of a Redis.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        Ok(Self {
            client: open(url).map_err(StoreError::Misconfigured)?,
            connection: Mutex::default(),
            bucket: Script::new(include_str!("bucket.lua")),
            hold: Script::new(include_str!("hold.lua")),
        })
    }

    /// Runs a script. A connection on which it fails is given up.
    async fn run<T: FromRedisValue>(
        &self,
        action: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let failed = |error: ::redis::RedisError| StoreError::Redis { action, message: error.to_string() };
        let mut connection = {
            let mut kept = self.connection.lock().await;
            match &*kept {
                Some(connection) => connection.clone(),
                None => kept.insert(connect(&self.client).await.map_err(failed)?).clone(),
            }
        };
        let answer = script.invoke_async(&mut connection).await;
        if answer.is_err() {
            self.connection.lock().await.take();
        }
        answer.map_err(failed)
    }

    /// One step on a bucket: `take` or `give`. What is given back has a negative cost.
    fn step(
        &self,
        what: &str,
        key: &LimitKey,
        terms: &Terms,
        (requests, tokens): (i64, i64),
        now: Timestamp,
    ) -> ScriptInvocation<'_> {
        let flow = |flow: Option<Flow>, cost: i64| match flow {
            Some(flow) => [flow.rate, flow.capacity, cost],
            None => [-1, 0, 0],
        };
        let mut script = self.bucket.prepare_invoke();
        script.key(PREFIX.to_owned() + &key.bucket()).key(PREFIX.to_owned() + &key.hold());
        script.arg(what).arg(now.0);
        for number in flow(terms.requests, requests).into_iter().chain(flow(terms.tokens, tokens)) {
            script.arg(number);
        }
        script
    }
}

#[async_trait]
impl RateLimits for RedisLimits {
    async fn admit(
        &self,
        key: &LimitKey,
        limit: &Limit,
        tokens: i64,
        now: Timestamp,
    ) -> Result<Admission, StoreError> {
        let terms = Terms::of(limit);
        let costs = (terms.request(), terms.cost(tokens.max(0)));
        let step = self.step("take", key, &terms, costs, now);
        let (granted, until, held): (bool, i64, bool) = self.run("admit a call", &step).await?;
        Ok(match granted {
            true => Admission::Granted(Grant::of(tokens)),
            false => Admission::Wait { until: Timestamp(until), held },
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
        if limit.tokens_per_minute.is_none() || grant.left(used) == 0 {
            return Ok(());
        }
        let terms = Terms::of(limit);
        let step = self.step("give", key, &terms, (0, -terms.cost(grant.left(used))), now);
        self.run("settle a call", &step).await.map(|_: (bool, i64, bool)| ())
    }

    async fn hold(&self, key: &LimitKey, until: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        let mut script = self.hold.prepare_invoke();
        script.key(PREFIX.to_owned() + &key.hold()).arg(until.0).arg(now.0);
        self.run("hold a model", &script).await.map(|_: bool| ())
    }
}
