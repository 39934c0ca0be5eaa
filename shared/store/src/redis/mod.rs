//! Redis, the optional accelerator: carries hints and live texts between processes and keeps rate limits. It is never authoritative: without it
//! everything still completes.

mod limits;
mod live;
mod relay;

pub use limits::RedisLimits;
pub use relay::RedisRelay;

use crate::{Finding, StoreError};
use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use async_recursion::async_recursion as boxed;
use std::time::Duration;

/// The longest that connecting, or an answer, may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks whether this Redis may be used, for `turnstone doctor`.
#[boxed]
pub async fn check(url: &str) -> Vec<Finding> {
    match memory_of(url).await {
        Err(unreachable) => vec![unreachable],
        Ok(memory) => vec![Finding::good("Redis answers"), keeping(&memory)],
    }
}

/// Refuses a Redis that must not be used, at the start of every service. One that does not answer now is no reason to
/// stay away: everything works without it, and it is found when it is there.
///
/// # Errors
/// [`StoreError::Misconfigured`] when this is no address, [`StoreError::Unfit`] when this Redis throws away what it is
/// given; both say what to do.
#[boxed]
pub async fn demand(url: &str) -> Result<(), StoreError> {
    check_address(url)?;
    match memory_of(url).await.map(|memory| keeping(&memory)) {
        Ok(Finding { what, ok: false, advice }) => Err(StoreError::Unfit(format!("{what}; {advice}"))),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Checks the form of the address; nothing is connected to.
///
/// # Errors
/// [`StoreError::Misconfigured`] when it is no address of a Redis.
pub fn check_address(url: &str) -> Result<(), StoreError> {
    open(url).map(|_| ()).map_err(StoreError::Misconfigured)
}

/// Returns the answer to `INFO memory`: unlike `CONFIG`, every provider of Redis allows it.
async fn memory_of(url: &str) -> Result<String, Finding> {
    let advice = "start it, correct REDIS_URL ([redis] url), or leave Redis out: everything works without it";
    let unreachable = |error: RedisError| Finding::bad(format!("Redis cannot be asked: {error}"), advice);
    let client = open(url).map_err(|problem| Finding::bad(problem, advice))?;
    let mut connection = connect(&client).await.map_err(unreachable)?;
    ::redis::cmd("INFO").arg("memory").query_async(&mut connection).await.map_err(unreachable)
}

/// Checks that this Redis keeps what it stores.
fn keeping(memory: &str) -> Finding {
    let value = |key: &str| {
        memory.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map_or("", str::trim)
    };
    let (limit, policy) = (value("maxmemory"), value("maxmemory_policy"));
    if matches!(limit, "" | "0") || matches!(policy, "" | "noeviction") {
        return Finding::good("Redis keeps what it is given");
    }
    Finding::bad(
        format!(
            "Redis throws away rate limits when its memory is full (maxmemory {limit}, maxmemory-policy {policy})"
        ),
        "set its maxmemory-policy to noeviction, or give Turnstone a Redis of its own",
    )
}

fn open(url: &str) -> Result<Client, String> {
    Client::open(url).map_err(|error| {
        format!("REDIS_URL ([redis] url) is not an address such as redis://host:6379/0: {error}")
    })
}

async fn connect(client: &Client) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    client.get_multiplexed_async_connection_with_config(&config).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_that_evicts_is_recognised() {
        let info = |limit: &str, policy: &str| {
            format!("# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_human:x\r\nmaxmemory_policy:{policy}\r\n")
        };
        for policy in ["noeviction", "allkeys-lru", "volatile-ttl"] {
            assert!(keeping(&info("0", policy)).ok, "{policy}");
        }
        assert!(keeping(&info("1048576", "noeviction")).ok);
        let Finding { what, ok, advice } = keeping(&info("1048576", "allkeys-lru"));
        assert!(!ok && what.contains("allkeys-lru") && advice.contains("noeviction"), "{what}; {advice}");
    }

    #[tokio::test]
    async fn an_unreachable_redis_is_reported_without_its_password() {
        for url in ["nowhere", "http://:secret-word@127.0.0.1:1", "redis://:secret-word@127.0.0.1:1"] {
            let [Finding { what, ok, advice }] = &check(url).await[..] else { panic!("{url}") };
            assert!(!ok && advice.contains("REDIS_URL") && !what.contains("secret-word"), "{what}; {advice}");
            let refused = demand(url).await.map_err(|error| error.to_string());
            assert_eq!(refused.is_err(), !url.starts_with("redis://"), "{url}: {refused:?}");
        }
    }
}
