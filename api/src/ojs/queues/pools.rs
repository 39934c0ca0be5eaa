//! `/ojs/v1/admin/pools` and `/ojs/v1/admin/scheduling/stats` (OJS fair scheduling): queues that share workers by weight.

use super::settings::queue_name;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use turnstone_ojs::{OjsError, request};
use turnstone_store::{Pool, PoolStrategy, Share};
use utoipa::ToSchema;

/// A queue may have at most this weight.
const MOST_WEIGHT: i64 = 1_000_000;

/// A pool.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"name": "tenants", "strategy": "weighted", "queues": {"gold": {"weight": 3}, "free": {"weight": 1}}}))]
pub(super) struct PoolRequest {
    /// The pool, as in the path.
    name: Option<String>,
    /// weighted (also: weighted_fair and the like), round_robin or strict.
    strategy: Option<String>,
    /// The queues with their weights.
    #[schema(value_type = Option<BTreeMap<String, Weight>>)]
    queues: Option<Value>,
}

/// A weight.
#[derive(Deserialize, ToSchema)]
pub(super) struct Weight {
    /// 1 by default.
    #[schema(minimum = 1, maximum = 1000000)]
    weight: Option<i64>,
}

/// A pool.
#[derive(Serialize, ToSchema)]
pub(super) struct PoolReply {
    /// As it was sent.
    #[schema(example = json!({"name": "tenants", "strategy": "weighted", "queues": {"gold": {"weight": 3}}}))]
    pool: Map<String, Value>,
}

/// The pools.
#[derive(Serialize, ToSchema)]
pub(super) struct PoolList {
    /// By name, each as it was sent.
    pools: Vec<Map<String, Value>>,
}

/// The shares of the queues of pools.
#[derive(Serialize, ToSchema)]
pub(super) struct SchedulingStats {
    stats: PoolStats,
    /// Every queue that is in a pool.
    queues: Vec<QueueShare>,
    /// Since when claims are counted: the earliest setting of a pool, RFC 3339; null without pools.
    window: Window,
}

/// Sums over all pools.
#[derive(Serialize, ToSchema)]
pub(super) struct PoolStats {
    /// Claims from queues that are in a pool.
    total_claims: i64,
    pools: usize,
    queues: usize,
}

/// The period of the counts.
#[derive(Serialize, ToSchema)]
pub(super) struct Window {
    since: Option<String>,
    until: String,
}

/// The share of a queue in its pool.
#[derive(Serialize, ToSchema)]
pub(super) struct QueueShare {
    queue: String,
    pool: String,
    /// weighted, round_robin or strict.
    strategy: &'static str,
    weight: i64,
    /// Jobs that were claimed since the pool was set.
    claims: i64,
    /// Its part of the claims of its pool, from 0 to 1.
    share: f64,
    /// The part that its weight promises while all queues of the pool have jobs; null under `strict`.
    target: Option<f64>,
}

/// Sets a pool: claims that name several of its queues are shared between them.
#[utoipa::path(
    put, path = "/ojs/v1/admin/pools/{name}", tag = "queues",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The pool.", example = "tenants")),
    request_body = PoolRequest,
    responses(
        (status = 200, description = "It is set.", body = PoolReply),
        (status = 201, description = "It is new.", body = PoolReply),
    ),
)]
pub(crate) async fn put_pool(
    State(app): State<Shared>,
    Segment(name): Segment,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let pool = read(&name, request::read_if_any(&body)?)?;
    let config = pool.config.clone();
    let is_new = app.api.store.queues.set_pool(pool, app.api.clock.now()).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(reply::json(status, &PoolReply { pool: config }))
}

/// Lists the pools by name.
#[utoipa::path(
    get, path = "/ojs/v1/admin/pools", tag = "queues",
    security(("fleet" = ["viewer"])),
    responses((status = 200, description = "The pools.", body = PoolList)),
)]
pub(crate) async fn list_pools(State(app): State<Shared>) -> Answer {
    let pools = app.api.store.queues.pools(None).await?;
    let pools = pools.into_iter().map(|pool| pool.config).collect();
    Ok(reply::ok(&PoolList { pools }))
}

/// Shows a pool.
#[utoipa::path(
    get, path = "/ojs/v1/admin/pools/{name}", tag = "queues",
    security(("fleet" = ["viewer"])),
    params(("name" = String, Path, description = "The pool.", example = "tenants")),
    responses((status = 200, description = "The pool.", body = PoolReply)),
)]
pub(crate) async fn show_pool(State(app): State<Shared>, Segment(name): Segment) -> Answer {
    let found = app.api.store.queues.pools(Some(&name)).await?.pop();
    let pool = found.ok_or_else(|| OjsError::not_found("pool", &name))?;
    Ok(reply::ok(&PoolReply { pool: pool.config }))
}

/// The shares of the queues of pools, as counted in the transactions of the claims.
#[utoipa::path(
    get, path = "/ojs/v1/admin/scheduling/stats", tag = "queues",
    security(("fleet" = ["viewer"])),
    responses((status = 200, description = "The shares.", body = SchedulingStats)),
)]
pub(crate) async fn scheduling_stats(State(app): State<Shared>) -> Answer {
    let shares = app.api.store.queues.shares().await?;
    let mut sums: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for share in &shares {
        let (claims, weights) = sums.entry(&share.pool).or_default();
        *claims += share.claims;
        *weights += weight(share);
    }
    let queues: Vec<QueueShare> = shares
        .iter()
        .map(|share| {
            let (claims, weights) = sums.get(share.pool.as_str()).copied().unwrap_or_default();
            let strict = share.strategy == PoolStrategy::Strict;
            QueueShare {
                queue: share.queue.clone(),
                pool: share.pool.clone(),
                strategy: share.strategy.as_str(),
                weight: share.weight,
                claims: share.claims,
                share: part(share.claims, claims),
                target: (!strict).then(|| part(weight(share), weights)),
            }
        })
        .collect();
    let stats = PoolStats {
        total_claims: sums.values().map(|(claims, _)| claims).sum(),
        pools: sums.len(),
        queues: queues.len(),
    };
    let window = Window {
        since: shares.iter().map(|share| share.since).min().map(|at| at.to_rfc3339()),
        until: app.api.clock.now().to_rfc3339(),
    };
    Ok(reply::ok(&SchedulingStats { stats, queues, window }))
}

/// Returns the effective weight.
fn weight(share: &Share) -> i64 {
    if share.strategy == PoolStrategy::RoundRobin { 1 } else { share.weight }
}

#[expect(clippy::cast_precision_loss, reason = "shares are shown, not reckoned with")]
fn part(of: i64, all: i64) -> f64 {
    if all == 0 { 0.0 } else { of as f64 / all as f64 }
}

/// Reads a pool. The members are kept as they were sent; the name is always included.
fn read(name: &str, sent: PoolRequest) -> Result<Pool, OjsError> {
    if name.is_empty() || name.chars().count() > 128 || name.chars().any(char::is_control) {
        return Err(OjsError::invalid_request("the pool's name", "must have 1 to 128 visible characters"));
    }
    if sent.name.is_some_and(|other| other != name) {
        return Err(OjsError::invalid_request("name", "must be the pool that the path names"));
    }
    let word = sent.strategy;
    let strategy = match &word {
        None => PoolStrategy::Weighted,
        Some(word) => strategy(word).ok_or_else(|| {
            OjsError::invalid_request("strategy", "must be weighted, round_robin or strict")
        })?,
    };
    let shown = sent.queues.unwrap_or_else(|| json!({}));
    let queues = members(&shown)?;
    let mut config = Map::new();
    config.insert("name".to_owned(), name.into());
    config.insert("strategy".to_owned(), word.unwrap_or_else(|| strategy.as_str().to_owned()).into());
    config.insert("queues".to_owned(), shown);
    Ok(Pool { name: name.to_owned(), strategy, config, queues })
}

/// Returns the strategy for a word; a strategy has several names.
fn strategy(word: &str) -> Option<PoolStrategy> {
    let plain = word.to_ascii_lowercase().replace(['-', ' '], "_");
    let has = |parts: &[&str]| parts.iter().any(|part| plain.contains(part));
    if has(&["weight", "fair", "wfq", "wrr", "drr", "deficit", "proportion", "stride", "lottery"]) {
        Some(PoolStrategy::Weighted)
    } else if has(&["round_robin", "roundrobin"]) || plain == "rr" {
        Some(PoolStrategy::RoundRobin)
    } else if has(&["strict", "priority"]) {
        Some(PoolStrategy::Strict)
    } else {
        None
    }
}

/// Queues with weights: `{"a": {"weight": 2}, "b": 1}`, or a list of `{"name": "a", "weight": 2}` and names.
fn members(queues: &Value) -> Result<Vec<(String, i64)>, OjsError> {
    let wrong = |field: &str, why: &str| OjsError::invalid_request(field, why);
    let pairs: Vec<(String, &Value)> = match queues {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(list) => list
            .iter()
            .map(|item| {
                let name = item.get("name").or_else(|| item.get("queue")).unwrap_or(item);
                let name = name.as_str().ok_or_else(|| wrong("queues", "must name each queue"))?;
                Ok((name.to_owned(), item))
            })
            .collect::<Result<_, OjsError>>()?,
        _ => return Err(wrong("queues", "must be an object of queues with their weights")),
    };
    let mut members = BTreeMap::new();
    for (name, value) in pairs {
        queue_name(&name)?;
        let weight = match value {
            Value::Object(_) => Weight::deserialize(value).map(|sent| sent.weight),
            Value::Number(_) => Option::deserialize(value),
            _ => Ok(None),
        };
        let weight = weight.map(|weight| weight.unwrap_or(1)).ok();
        let weight = weight.filter(|weight| (1..=MOST_WEIGHT).contains(weight)).ok_or_else(|| {
            let why = format!("must be a whole number from 1 to {MOST_WEIGHT}");
            wrong(&format!("queues.{name}.weight"), &why)
        })?;
        if members.insert(name, weight).is_some() {
            return Err(wrong("queues", "names a queue twice"));
        }
    }
    Ok(members.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(body: Value) -> Result<Pool, OjsError> {
        read("p", request::read(body.to_string().as_bytes())?)
    }

    #[test]
    fn a_pool_is_read_in_each_of_its_forms() {
        let queues = vec![("a".to_owned(), 2), ("b".to_owned(), 1)];
        for body in [
            json!({"queues": {"a": {"weight": 2}, "b": {}}}),
            json!({"queues": {"b": 1, "a": 2}}),
            json!({"queues": [{"name": "a", "weight": 2}, "b"]}),
        ] {
            assert_eq!(pool(body).unwrap().queues, queues);
        }
        let echoed =
            pool(json!({"name": "p", "strategy": "weighted-fair", "queues": {"a": {"weight": 2}}})).unwrap();
        assert_eq!(echoed.strategy, PoolStrategy::Weighted);
        let expected = json!({"name": "p", "strategy": "weighted-fair", "queues": {"a": {"weight": 2}}});
        assert_eq!(Value::Object(echoed.config), expected);
    }

    #[test]
    fn strategies_have_many_names() {
        for (word, expected) in [
            ("weighted", Some(PoolStrategy::Weighted)),
            ("weighted_round_robin", Some(PoolStrategy::Weighted)),
            ("Round-Robin", Some(PoolStrategy::RoundRobin)),
            ("strict_priority", Some(PoolStrategy::Strict)),
            ("whatever", None),
        ] {
            assert_eq!(strategy(word), expected, "{word}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for body in [
            json!({"name": "other"}),
            json!({"strategy": "whatever"}),
            json!({"strategy": 5}),
            json!({"queues": 5}),
            json!({"queues": {"A": {}}}),
            json!({"queues": {"a": {"weight": 0}}}),
            json!({"queues": {"a": {"weight": 1.5}}}),
            json!({"queues": ["a", "a"]}),
            json!({"queues": [5]}),
        ] {
            assert_eq!(pool(body.clone()).unwrap_err().status, 400, "{body}");
        }
    }
}
