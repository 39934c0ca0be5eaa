//! A worker with many slots claims no more jobs while its turns cannot write.

use crate::conformance::jobs::agent;
use sqlx::{Connection as _, PgConnection};
use std::time::Duration;
use turnstone_tests::servers::Postgres;
use turnstone_tests::{Fleet, wait};

const JOBS: i64 = 1_300;
/// A claim is made while fewer than 512 writes are under way, and takes at most 512 jobs.
const MOST: i64 = 1_023;

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_claims_no_more_while_many_of_its_turns_write() {
    let postgres = Postgres::shared().await;
    let database = postgres.database().await;
    let url = postgres.url(&database);
    let mut fleet = Fleet::builder().on_database(database).workers(0).in_real_time().start().await;
    fleet.store.intake.push((0..JOBS).map(|_| agent(None)).collect()).await.unwrap();
    // A transaction of another process keeps turns from writing; claims go on.
    let mut other = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE journal IN EXCLUSIVE MODE").execute(&mut other).await.unwrap();
    fleet.add_worker(usize::try_from(JOBS).unwrap());
    let active = "SELECT count(*) FROM jobs WHERE state = 'active'";
    wait::until("a claim is made", async || fleet.number(active).await > 0).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let claimed = fleet.number(active).await;
        assert!(claimed <= MOST, "{claimed} jobs");
    }
    drop(other);
    let done = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    wait::until("all jobs have run", async || fleet.number(done).await == JOBS).await;
    fleet.end().await;
}
