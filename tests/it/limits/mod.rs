//! Rate limits of a fleet: through Redis, through the database, and per process when neither answers.

mod keepers;
mod services;
mod workers;

use std::sync::Arc;
use turnstone_domain::ids::SystemIds;
use turnstone_store::limits::{Limit, RateLimits};
use turnstone_store::redis::RedisLimits;
use turnstone_store::{PostgresOptions, PostgresStore, Store};
use turnstone_tests::servers::{Database, Postgres, Redis};

/// A shared limit, as two processes see it.
struct Shared {
    name: &'static str,
    one: Arc<dyn RateLimits>,
    other: Arc<dyn RateLimits>,
    _stands_on: Ground,
}

/// Holds the servers and stores of a limit for as long as it is used.
enum Ground {
    Redis { _server: Redis },
    Database { _database: Database, _stores: Vec<Store> },
}

impl Shared {
    async fn redis() -> Self {
        let server = Redis::start().await;
        let limits = || Arc::new(RedisLimits::new(&server.url()).unwrap());
        let (one, other) = (limits(), limits());
        Self { name: "Redis", one, other, _stands_on: Ground::Redis { _server: server } }
    }

    async fn database() -> Self {
        let database = Postgres::shared().await.database().await;
        let options = PostgresOptions::new(&database.url);
        PostgresStore::migrate(&options, &[]).await.unwrap();
        let (one, _) = PostgresStore::open(&options, Arc::new(SystemIds)).await.unwrap();
        let (other, _) = PostgresStore::open(&options, Arc::new(SystemIds)).await.unwrap();
        Self {
            name: "the database",
            one: Arc::clone(&one.limits),
            other: Arc::clone(&other.limits),
            _stands_on: Ground::Database { _database: database, _stores: vec![one, other] },
        }
    }

    async fn every() -> [Self; 2] {
        [Self::redis().await, Self::database().await]
    }
}

fn per_minute(requests: impl Into<Option<u64>>, tokens: impl Into<Option<u64>>) -> Limit {
    Limit { requests_per_minute: requests.into(), tokens_per_minute: tokens.into() }
}
