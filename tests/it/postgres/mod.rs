//! PostgreSQL only: plans, partitions of history, several processes on one database, notifications between them, and
//! a pooler.

mod bells;
mod burst;
mod costs;
mod cut_off;
mod families;
mod history;
mod idempotency;
mod inputs;
mod lost_claims;
mod migrating;
mod plans;
mod pooler;
mod refused;
mod timeouts;
mod two_stores;

use std::sync::Arc;
use turnstone_domain::ids::SystemIds;
use turnstone_store::{PostgresOptions, PostgresStore, Store};
use turnstone_tests::Place;
use turnstone_tests::servers::{Database, Postgres};

/// A migrated database of the test's own.
async fn migrated() -> Database {
    let database = Postgres::shared().await.database().await;
    Place::from(&database).migrate().await;
    database
}

/// Opens a store like that of a separate process.
async fn opened(options: &PostgresOptions) -> Store {
    PostgresStore::open(options, Arc::new(SystemIds)).await.unwrap().0
}

/// Few connections, so that the shared server has enough for all tests.
fn few(url: &str) -> PostgresOptions {
    PostgresOptions { connections: 4, ..PostgresOptions::new(url) }
}
