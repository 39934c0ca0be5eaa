//! Queues as operators see them: paused, bounded, limited, weighted: the writes.

use super::super::journal::Journal;
use super::super::queues::queue as decode_queue;
use super::super::rows::{Inconsistency, PoolMember, QueueName, get};
use super::super::session::{Arg, Args, Row, Session};
use super::super::statement::{Writes, as_json, read, read_by};
use super::super::unit::Unit;
use super::push;
use crate::sql::{self, Text};
use crate::{ConfigChange, Pool, QueueLimits, Ring, StoreError};
use turnstone_domain::Timestamp;
use turnstone_domain::event::{EventBody, QueueChange};
use turnstone_domain::terms::RateLimit;

async fn execute(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    values: &[Arg<'_>],
) -> Result<u64, StoreError> {
    session.execute(action, text, Args::Values(values)).await
}

/// An event about a queue is a stream of its own: it takes a number as a job does.
pub(in super::super) async fn pause(
    session: &mut Session,
    unit: &mut Unit,
    name: &str,
    paused: bool,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let values = [name.into()];
    let known = read(session, "read a queue", &sql::LOCK_QUEUE, &values, decode_queue).await?;
    let was = known.first().is_some_and(|queue| queue.paused);
    let values = [name.into(), i64::from(paused).into(), now.0.into()];
    execute(session, "pause a queue", &sql::INSERT_QUEUE_PAUSE, &values).await?;
    if was == paused {
        return Ok(false);
    }
    let number = push::number(session).await?;
    let change = QueueChange { queue: name.to_owned(), subject: name.to_owned() };
    let event = if paused { EventBody::QueuePaused(change) } else { EventBody::QueueResumed(change) };
    let (mut journal, mut writes) = (Journal::default(), Writes::default());
    journal.lone(number, &event, now);
    journal.flush(session, &mut writes)?;
    writes.run(session).await?;
    unit.rings.push(Ring::Events(name.to_owned()));
    unit.rings.push(Ring::Available);
    Ok(true)
}

pub(in super::super) async fn configure(
    session: &mut Session,
    unit: &mut Unit,
    name: &str,
    change: &ConfigChange,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let values = [name.into()];
    let known = read(session, "read a queue", &sql::LOCK_QUEUE, &values, decode_queue).await?.pop();
    let is_new = known.is_none();
    unit.rings.push(Ring::Available);
    let (mut config, mut limits) = known.map(|queue| (queue.config, queue.limits)).unwrap_or_default();
    for (member, value) in &change.members {
        if value.is_null() {
            config.shift_remove(member);
        } else {
            config.insert(member.clone(), value.clone());
        }
    }
    if let Some(changed) = &change.limits {
        limits = changed.clone();
    }
    let config = as_json(&config)?;
    let QueueLimits { max_depth, max_bytes, warn_at, concurrency, rate, throttle_ms, retention } = limits;
    let (rate, period_ms) = rate.map(|rate| (rate.limit, rate.period_ms)).unzip();
    let values = [
        name.into(),
        config.as_str().into(),
        Arg::Int(max_depth),
        Arg::Int(max_bytes),
        Arg::Int(warn_at),
        Arg::Int(concurrency),
        Arg::Int(rate),
        Arg::Int(period_ms),
        Arg::Int(throttle_ms),
        Arg::Int(retention.completed_ms),
        Arg::Int(retention.discarded_ms),
        Arg::Int(retention.cancelled_ms),
        now.0.into(),
    ];
    execute(session, "configure a queue", &sql::INSERT_QUEUE_CONFIG, &values).await?;
    Ok(is_new)
}

pub(in super::super) async fn set_pool(
    session: &mut Session,
    pool: &Pool,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let decode = |row: &Row| Ok((get::<String>(row, "name")?, get::<i64>(row, "pass")?));
    let keys = vec![pool.name.clone()];
    let known = read_by(session, "lock pools", &sql::LOCK_CLAIMED_POOLS, keys, decode).await?;
    let pass = known.first().map_or(0, |(_, pass)| *pass);
    let config = as_json(&pool.config)?;
    let values =
        [pool.name.as_str().into(), pool.strategy.as_str().into(), config.as_str().into(), now.0.into()];
    execute(session, "write a pool", &sql::INSERT_POOL, &values).await?;
    execute(session, "empty a pool", &sql::UPDATE_QUEUE_WITHOUT_POOL, &[pool.name.as_str().into()]).await?;
    let queues = pool.queues.iter();
    let names = queues.map(|(queue, _)| QueueName { name: queue.clone(), created_at: now }).collect();
    let mut writes = Writes::default();
    writes.insert_missing("remember queues", names);
    writes.run(session).await?;
    let member = |(queue, weight): &(String, i64)| PoolMember {
        name: queue.clone(),
        pool: pool.name.clone(),
        weight: *weight,
        pass,
    };
    let members = pool.queues.iter().map(member);
    let mut writes = Writes::default();
    writes.all("fill a pool", &sql::UPDATE_QUEUES_OF_POOL, members.collect());
    writes.run(session).await?;
    Ok(known.is_empty())
}

pub(in super::super) async fn override_limit(
    session: &mut Session,
    unit: &mut Unit,
    key: &str,
    limit: Option<&RateLimit>,
) -> Result<bool, StoreError> {
    let values = [key.into()];
    let known = read(session, "read a limit", &sql::LOCK_RATE_KEY, &values, limits_of).await?;
    let known = known.into_iter().next();
    unit.rings.push(Ring::Available);
    if limit.is_none() && known.as_ref().is_none_or(|(overridden, _)| !overridden) {
        return Ok(false);
    }
    let text = if limit.is_some() { &sql::INSERT_RATE_KEY_OVERRIDE } else { &sql::UPDATE_RESTORED_RATE_KEY };
    let before: Option<RateLimit> = known
        .as_ref()
        .and_then(|(_, requested)| requested.as_deref())
        .and_then(|text| serde_json::from_str(text).ok());
    let limit = limit.cloned().or(before).unwrap_or_default();
    let (rate, period_ms) = limit.rate.map(|rate| (rate.limit, rate.period_ms)).unzip();
    let values = [
        key.into(),
        Arg::Int(limit.concurrency),
        Arg::Int(rate),
        Arg::Int(period_ms),
        Arg::Int(limit.throttle_ms),
    ];
    execute(session, "write a limit", text, &values).await?;
    Ok(known.is_some())
}

/// Returns true when an operator's limit applies, and the limit that jobs named.
fn limits_of(row: &Row) -> Result<(bool, Option<String>), Inconsistency> {
    Ok((get(row, "overridden")?, get(row, "asked")?))
}
