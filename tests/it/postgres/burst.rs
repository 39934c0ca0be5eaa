//! A worker with many slots claims no more jobs while its turns cannot write.

use crate::conformance::jobs::agent;
use sqlx::{Connection as _, PgConnection};
use turnstone_tests::servers::Postgres;
use turnstone_tests::{Fleet, wait};

/// More than one claim takes.
const JOBS: i64 = 600;
/// The number of claims, and the milliseconds between the first and the last.
const CLAIMS: &str = "SELECT count(DISTINCT claimed_at) FROM jobs";
const APART: &str = "SELECT max(claimed_at) - min(claimed_at) FROM jobs";

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_waits_with_a_claim_while_many_of_its_turns_write() {
    let postgres = Postgres::shared().await;
    let database = postgres.database().await;
    let url = postgres.url(&database);
    let mut fleet = Fleet::builder().on_database(database).workers(0).in_real_time().start().await;
    fleet.store.intake.push((0..JOBS).map(|_| agent(None)).collect()).await.unwrap();
    // A transaction of another process keeps turns from writing; claims go on.
    let mut other = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE totals IN EXCLUSIVE MODE").execute(&mut other).await.unwrap();
    fleet.add_worker(usize::try_from(JOBS).unwrap());
    wait::until("there is a second claim", async || fleet.number(CLAIMS).await > 1).await;
    let apart = fleet.number(APART).await;
    assert!(apart >= 1_900, "{apart} ms");
    drop(other);
    let done = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    wait::until("all jobs have run", async || fleet.number(done).await == JOBS).await;
    fleet.end().await;
}
