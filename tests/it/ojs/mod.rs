//! The OJS server over HTTP. Every case runs on SQLite and on PostgreSQL with a manual clock. The default suite runs
//! a case on PostgreSQL where its SQL or its locks differ.

mod attest;
mod batch;
mod batches;
mod clients;
mod control;
mod cron;
mod damaged;
mod encryption;
mod envelope;
mod events;
mod idempotency;
mod lookups;
mod nul;
mod operate;
mod places;
mod queries;
mod queues;
mod refused;
mod schemas;
mod server;
mod tenancy;
mod tenant_limits;
mod times;
mod transitions;
mod unique;
mod webhooks;
pub(crate) mod work;
mod workflows;

/// Makes a test of each case per store. A case takes a [`turnstone_tests::OjsServer`] of its own.
macro_rules! on_every_store {
    ($($case:ident),+ $(,)?) => {
        crate::ojs::on_stores!(cfg_attr(no_postgres, ignore = "needs PostgreSQL"); $($case),+);
    };
}
pub(crate) use on_every_store;

/// Makes the same tests, with those on PostgreSQL in the long suite: they differ in statements only, which
/// `conformance` tests there.
macro_rules! on_sqlite_first {
    ($($case:ident),+ $(,)?) => {
        crate::ojs::on_stores!(ignore = "long: the same rule on PostgreSQL"; $($case),+);
    };
}
pub(crate) use on_sqlite_first;

/// Makes the tests on SQLite, and those on PostgreSQL with an attribute.
macro_rules! on_stores {
    ($postgres:meta; $($case:ident),+) => {
        mod sqlite {
            use turnstone_tests::{Backend, OjsServer};
            $(
                #[tokio::test]
                async fn $case() {
                    let server = OjsServer::start(Backend::Sqlite).await;
                    super::$case(&server).await;
                    server.end().await;
                }
            )+
        }
        mod postgres {
            use turnstone_tests::{Backend, OjsServer};
            $(
                #[tokio::test]
                #[$postgres]
                async fn $case() {
                    let server = OjsServer::start(Backend::Postgres).await;
                    super::$case(&server).await;
                    server.end().await;
                }
            )+
        }
    };
}
pub(crate) use on_stores;
