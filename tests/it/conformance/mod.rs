//! One suite for both stores. Every case runs on SQLite, on encrypted SQLite, on PostgreSQL and through PgBouncer.
//! Cases use the traits of the store; SQL serves as an independent witness.
//!
//! A rule is a named case; `histories` compares random histories with a model in memory. The stores take the time as
//! an argument, so no clock is needed.

mod artifacts;
mod backend;
mod breakers;
mod budget;
mod budget_waits;
mod budgets;
mod clock_steps;
mod delegation;
mod fencing;
mod fleet;
mod grants;
mod histories;
mod history;
mod inputs;
mod intake;
pub(crate) mod jobs;
mod journal;
mod leases;
mod limits;
mod lists;
mod lost_commits;
mod migrations;
mod model;
mod operate;
mod operations;
mod order;
mod pools;
mod queues;
mod remote_calls;
mod retention;
mod reviewers;
mod reviews;
mod runs;
mod session_state;
mod shown;
mod tenants;
mod time;
mod transitions;
mod unique;
mod waits;
pub(crate) mod workflows;

/// Makes a test of each case per database. Those with encryption at rest and through a pooler are in the long suite.
macro_rules! on_every_store {
    ($($case:ident),+ $(,)?) => {
        mod sqlite {
            use crate::conformance::backend::{Backend, open};
            $(#[tokio::test] async fn $case() { super::$case(&open(Backend::Sqlite).await).await; })+
        }
        mod sealed {
            use crate::conformance::backend::{Backend, open};
            $(#[ignore = "long: the rule on an encrypted database"]
            #[tokio::test] async fn $case() { super::$case(&open(Backend::Sealed).await).await; })+
        }
        mod postgres {
            use crate::conformance::backend::{Backend, open};
            $(
                #[tokio::test]
                #[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
                async fn $case() { super::$case(&open(Backend::Postgres).await).await; }
            )+
        }
        mod pooled {
            use crate::conformance::backend::{Backend, open};
            $(#[ignore = "long: the rule behind a pooler"]
            #[tokio::test] async fn $case() { super::$case(&open(Backend::Pooled).await).await; })+
        }
    };
}
use on_every_store;
