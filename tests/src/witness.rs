//! Observations of a PostgreSQL database from outside, and other clients that use it beside the product.

use crate::servers::{Database, Postgres};
use sqlx::{Connection as _, Executor as _, PgConnection};
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// The interval at which a reader queries its snapshot.
const LOOK: Duration = Duration::from_millis(100);

/// An observer of one database.
#[derive(Clone, Copy)]
pub struct Witness<'a> {
    /// The server.
    pub postgres: &'a Postgres,
    /// The database.
    pub database: &'a Database,
}

impl Witness<'_> {
    async fn rows(self, sql: &str) -> Vec<Vec<String>> {
        let rows = self.postgres.psql(self.database, sql).await;
        rows.lines().map(|row| row.split('|').map(str::to_owned).collect()).collect()
    }

    async fn numbers(self, sql: &str) -> Vec<(String, i64)> {
        let pair = |row: Vec<String>| {
            let [name, number] = <[String; 2]>::try_from(row).expect("two columns");
            (name, number.parse().expect("a number"))
        };
        self.rows(sql).await.into_iter().map(pair).collect()
    }

    /// Returns the number of jobs that can be claimed.
    pub async fn available(self) -> i64 {
        let counted = self.numbers("SELECT 'available', count(*) FROM jobs WHERE state = 'available'").await;
        counted.first().map_or(0, |(_, jobs)| *jobs)
    }

    /// Returns the number of jobs that ended since a time, in milliseconds of the epoch, per tenth of a
    /// second by its beginning. Tenths in which none ended are omitted.
    pub async fn ended(self, since: i64) -> Vec<(i64, i64)> {
        let sql = format!(
            "SELECT ended_at / 100 * 100, count(*) FROM jobs WHERE ended_at >= {since} GROUP BY 1 ORDER BY 1"
        );
        let counted = self.numbers(&sql).await;
        counted.into_iter().map(|(at, jobs)| (at.parse().expect("a time"), jobs)).collect()
    }

    /// Returns when a worker claimed one of its jobs since a time, both in milliseconds of the epoch; `None` if it has not.
    /// Only jobs that are active now are seen, so jobs that ended since may have been claimed earlier.
    pub async fn claimed(self, worker: &str, since: i64) -> Option<i64> {
        let sql = format!(
            "SELECT 'at', coalesce(min(claimed_at), 0) FROM jobs WHERE state = 'active' AND claimed_at > {since} \
             AND worker_id LIKE '{worker}%'"
        );
        self.numbers(&sql).await.first().map(|(_, at)| *at).filter(|at| *at > 0)
    }

    /// Returns the dead rows of each relation that has any, most first, with those of its partitions.
    pub async fn dead_rows(self) -> Vec<(String, i64)> {
        self.numbers(
            "SELECT regexp_replace(relname, '_([0-9]+|rest)$', '') AS relation, sum(n_dead_tup) AS dead \
             FROM pg_stat_user_tables GROUP BY 1 HAVING sum(n_dead_tup) > 0 ORDER BY 2 DESC, 1",
        )
        .await
    }

    /// Returns the leader among the schedulers; none when the last term is over.
    pub async fn leader(self) -> Option<String> {
        let sql =
            "SELECT holder FROM leaders WHERE expires_at > extract(epoch FROM clock_timestamp()) * 1000";
        self.rows(sql).await.into_iter().flatten().find(|holder| !holder.is_empty())
    }

    /// Starts a client that began a transaction, read, and left it open. It lasts until it is dropped.
    pub async fn forgotten_transaction(self) -> Snapshot {
        let mut connection = self.connection().await;
        connection.execute(SNAPSHOT).await.expect("a transaction");
        Snapshot { _kept: AbortOnDropHandle::new(tokio::spawn(keep(connection, None))) }
    }

    /// Starts a client that reads one snapshot repeatedly. It lasts until it is dropped.
    pub async fn reader(self) -> Snapshot {
        let mut connection = self.connection().await;
        connection.execute(SNAPSHOT).await.expect("a transaction");
        Snapshot { _kept: AbortOnDropHandle::new(tokio::spawn(keep(connection, Some(LOOK)))) }
    }

    /// Opens all connections that the server still permits; they do nothing.
    pub async fn take_all_connections(self) -> Vec<PgConnection> {
        let mut taken = Vec::new();
        while let Ok(connection) = PgConnection::connect(&self.postgres.url(self.database)).await {
            taken.push(connection);
        }
        taken
    }

    async fn connection(self) -> PgConnection {
        PgConnection::connect(&self.postgres.url(self.database)).await.expect("a connection")
    }
}

/// Begins a transaction whose snapshot is taken at once.
const SNAPSHOT: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id(); SELECT count(*) FROM jobs";

/// A transaction that keeps old rows visible.
pub struct Snapshot {
    _kept: AbortOnDropHandle<()>,
}

async fn keep(mut connection: PgConnection, looks: Option<Duration>) {
    let Some(pause) = looks else { return std::future::pending().await };
    while connection.execute("SELECT count(*) FROM jobs WHERE state = 'available'").await.is_ok() {
        tokio::time::sleep(pause).await;
    }
}
