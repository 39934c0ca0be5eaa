//! The OJS server through HTTP alone. Every case runs over SQLite and over PostgreSQL, at a time that the case moves.

mod attest;
mod batch;
mod clients;
mod control;
mod cron;
mod damaged;
mod encryption;
mod envelope;
mod events;
mod operate;
mod queries;
mod queues;
mod refused;
mod schemas;
mod server;
mod tenancy;
mod tenant_limits;
mod transitions;
mod unique;
mod webhooks;
pub(crate) mod work;
mod workflows;

/// Makes a test of each case per database. A case takes a [`turnstone_tests::OjsServer`] of its own.
macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            use turnstone_tests::{Backend, OjsServer};
            $(#[tokio::test] async fn $case() { super::$case(&OjsServer::start(Backend::Sqlite).await).await; })+
        }
        mod postgres {
            use turnstone_tests::{Backend, OjsServer};
            $(
                #[tokio::test]
                #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
                async fn $case() { super::$case(&OjsServer::start(Backend::Postgres).await).await; }
            )+
        }
    };
}
use on_both;
