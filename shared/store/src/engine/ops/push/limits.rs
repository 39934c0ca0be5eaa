//! The limits that jobs name, stored with the first job that names them (OJS rate limiting §3).

use crate::engine::limit_name;
use crate::engine::rows::{LimitRow, Wish, get};
use crate::engine::session::{Arg, Args, Row, Session};
use crate::engine::statement::{Writes, as_json, read, read_by};
use crate::{StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::NewJob;
use turnstone_domain::terms::{OnLimit, RateLimit};

/// The name under which the limit is stored that a job names by a key.
pub(super) fn key(job: &NewJob) -> Option<String> {
    let key = job.terms.rate_limit.as_ref()?.key.as_ref()?;
    Some(limit_name::stored(job.terms.tenant.as_deref(), key))
}

/// Remembers the limits that these jobs name. Of several jobs that name one limit the last one counts.
pub(super) async fn remember(session: &mut Session, jobs: &[&NewJob]) -> Result<(), StoreError> {
    let (mut keys, mut queues, mut wishes) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for job in jobs {
        let Some(limit) = &job.terms.rate_limit else { continue };
        match key(job) {
            Some(key) => drop(keys.insert(key, limit)),
            None => drop(queues.insert(job.queue.as_str(), limit)),
        }
        if limit.key.is_some() && limit.on_limit != OnLimit::Wait {
            wishes.push(Wish { id: job.id.clone(), on_limit: limit.on_limit });
        }
    }
    remember_keys(session, keys).await?;
    for (queue, limit) in queues {
        remember_queue(session, queue, limit).await?;
    }
    let mut writes = Writes::default();
    writes.some("write wishes", &sql::UPDATE_JOBS_ON_LIMIT, wishes);
    writes.run(session).await
}

async fn remember_keys(session: &mut Session, keys: BTreeMap<String, &RateLimit>) -> Result<(), StoreError> {
    let names = keys.keys().cloned().collect();
    let decode = |row: &Row| Ok((get::<String>(row, "name")?, get::<Option<String>>(row, "asked")?));
    let known = read_by(session, "read limits", &sql::LOCK_KNOWN_RATE_KEYS, names, decode).await?;
    let known: BTreeMap<String, Option<String>> = known.into_iter().collect();
    let mut rows = Vec::new();
    for (name, limit) in keys {
        // A job that names a limit and says nothing of it takes it as it is.
        let says_nothing = limit.concurrency.is_none() && limit.rate.is_none() && limit.throttle_ms.is_none();
        let requested = if says_nothing {
            None
        } else {
            Some(as_json(&RateLimit { key: None, on_limit: OnLimit::Wait, ..limit.clone() })?)
        };
        match known.get(&name) {
            Some(before) if requested.is_none() || *before == requested => {}
            _ => {
                let (rate, period_ms) = limit.rate.map(|rate| (rate.limit, rate.period_ms)).unzip();
                let (concurrency, throttle_ms) = (limit.concurrency, limit.throttle_ms);
                rows.push(LimitRow { name, asked: requested, concurrency, rate, period_ms, throttle_ms });
            }
        }
    }
    let mut writes = Writes::default();
    writes.all("remember limits", &sql::INSERT_RATE_KEYS, rows);
    writes.run(session).await
}

/// An operator's own limit stays.
async fn remember_queue(session: &mut Session, queue: &str, limit: &RateLimit) -> Result<(), StoreError> {
    let values = [queue.into()];
    let decode = |row: &Row| {
        let rate = get::<Option<i64>>(row, "rate")?.zip(get(row, "period_ms")?);
        let limit = (get(row, "concurrency")?, rate, get(row, "throttle_ms")?);
        Ok((get::<Option<String>>(row, "config")?, limit))
    };
    let known = read(session, "read a queue", &sql::SELECT_QUEUE_BY_NAME, &values, decode).await?;
    let Some((config, before)) = known.into_iter().next() else { return Ok(()) };
    let rate = limit.rate.map(|rate| (rate.limit, rate.period_ms));
    if before == (limit.concurrency, rate, limit.throttle_ms) || is_operated(config.as_deref()) {
        return Ok(());
    }
    let (rate, period_ms) = rate.unzip();
    let values = [
        queue.into(),
        Arg::Int(limit.concurrency),
        Arg::Int(rate),
        Arg::Int(period_ms),
        Arg::Int(limit.throttle_ms),
    ];
    session.execute("remember a limit", &sql::UPDATE_QUEUE_LIMIT, Args::Values(&values)).await.map(|_| ())
}

/// Returns true when an operator has set a limit of the queue.
fn is_operated(config: Option<&str>) -> bool {
    let config: serde_json::Map<String, serde_json::Value> =
        config.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    ["concurrency", "rate_limit"].iter().any(|name| config.contains_key(*name))
}
