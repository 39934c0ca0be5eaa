//! Migrations of a database that others use. The migrations after the baseline are those of the tests.

use super::{few, migrated};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::ids::SystemIds;
use turnstone_store::{MigrationFile, PostgresStore, StoreError};
use turnstone_tests::servers::{Database, Postgres};
use turnstone_tests::wait;

const BASELINE: MigrationFile =
    (1, "baseline", include_str!("../../../migrations/postgres/0001_baseline.sql"));
const COLUMN: MigrationFile = (2, "later", "-- additive\nALTER TABLE jobs ADD COLUMN later BIGINT");
const INDEX: MigrationFile = (
    3,
    "later_index",
    "-- additive\n-- no transaction\n\
     CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_later ON jobs (priority); -- of all states\n\
     CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_last ON jobs (attempt);",
);
const BREAKING: MigrationFile = (4, "less", "-- not additive\nALTER TABLE jobs DROP COLUMN later");

async fn connected(database: &Database) -> PgConnection {
    PgConnection::connect(&database.url).await.unwrap()
}

async fn number(conn: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(conn).await.unwrap()
}

const WAITERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                       wait_event_type = 'Lock' AND query LIKE '%ADD COLUMN later%'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_migration_that_waits_for_a_lock_holds_up_no_other_statement() {
    let database = migrated().await;
    let mut holder = connected(&database).await;
    let mut reading = holder.begin().await.unwrap();
    number(&mut reading, "SELECT count(*) FROM jobs").await;

    let options = few(&database.url);
    let migration = tokio::spawn(async move { PostgresStore::apply(&options, &[BASELINE, COLUMN]).await });
    let mut other = connected(&database).await;
    for wanted in [1, 0, 1, 0] {
        let waits = async || number(&mut connected(&database).await, WAITERS).await == wanted;
        wait::until("the migration waits, gives up and waits again", waits).await;
        let counting = number(&mut other, "SELECT count(*) FROM jobs");
        tokio::time::timeout(Duration::from_millis(2_900), counting)
            .await
            .expect("another statement waits briefly");
    }
    assert!(!migration.is_finished());
    reading.rollback().await.unwrap();
    let applied = wait::output("the migration ends", migration).await.unwrap().unwrap();
    assert_eq!(applied, ["0002 later"]);
    number(&mut other, "SELECT count(later) FROM jobs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn an_index_of_an_interrupted_migration_is_made_again() {
    let database = migrated().await;
    let postgres = Postgres::shared().await;
    // Two rows with one value leave an invalid index behind, as an interruption does.
    let insert = "INSERT INTO queues (name) VALUES ('one'), ('two')";
    postgres.psql(&database, insert).await;
    let mut conn = connected(&database).await;
    let broken = "CREATE UNIQUE INDEX CONCURRENTLY jobs_later ON queues (length(name))";
    assert!(sqlx::raw_sql(broken).execute(&mut conn).await.is_err());
    const INVALID: &str = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    assert_eq!(number(&mut conn, INVALID).await, 1);

    let options = few(&database.url);
    let files = [BASELINE, COLUMN, INDEX];
    let applied = PostgresStore::apply(&options, &files).await.unwrap();
    assert_eq!(applied, ["0002 later", "0003 later_index"]);
    assert_eq!(number(&mut conn, INVALID).await, 0);
    const MADE: &str = "SELECT count(*) FROM pg_indexes WHERE tablename = 'jobs' AND indexname IN ('jobs_later', 'jobs_last')";
    assert_eq!(number(&mut conn, MADE).await, 2);
    assert_eq!(PostgresStore::apply(&options, &files).await.unwrap(), Vec::<String>::new());
    // Interrupted between its statements: what is finished stays.
    let undo = "DELETE FROM _sqlx_migrations WHERE version = 3; DROP INDEX jobs_last";
    postgres.psql(&database, undo).await;
    assert_eq!(PostgresStore::apply(&options, &files).await.unwrap(), ["0003 later_index"]);
    assert_eq!(number(&mut conn, MADE).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_version_before_starts_after_an_additive_migration() {
    let database = migrated().await;
    let options = few(&database.url);
    let opens = async || PostgresStore::open(&options, Arc::new(SystemIds)).await.map(|_| ());
    PostgresStore::apply(&options, &[BASELINE, COLUMN, INDEX]).await.unwrap();
    opens().await.unwrap();
    assert_eq!(PostgresStore::migrate(&options, &[]).await.unwrap(), Vec::<String>::new());
    assert!(PostgresStore::check(&options).await.iter().all(|finding| finding.ok));

    PostgresStore::apply(&options, &[BASELINE, COLUMN, INDEX, BREAKING]).await.unwrap();
    let refusal = opens().await.unwrap_err();
    assert!(matches!(refusal, StoreError::Unfit(_)), "{refusal}");
    let words = ["has migration 4", "a newer Turnstone made it", "needs a program with migration 4"];
    assert!(words.iter().all(|words| refusal.to_string().contains(words)), "{refusal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn of_two_migrating_processes_one_applies_each_migration() {
    let database = Postgres::shared().await.database().await;
    let options = few(&database.url);
    let files = [BASELINE, COLUMN, INDEX];
    let (one, other) =
        tokio::join!(PostgresStore::apply(&options, &files), PostgresStore::apply(&options, &files));
    assert_eq!(one.unwrap().len() + other.unwrap().len(), 3);
}
