//! What a PostgreSQL server spent, as its own counters and the system tell it.

use super::machine::processor_ms_of;
use sqlx::{Connection, PgConnection, Row};
use std::time::Duration;

/// The time in which sessions that end report what they did.
const REPORTED: Duration = Duration::from_millis(500);
/// Rows that were inserted, updated or deleted in this database, and bytes of the write-ahead log of the server.
const COUNTERS: &str = "SELECT tup_inserted + tup_updated + tup_deleted AS rows, \
     (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS bytes \
     FROM pg_stat_database WHERE datname = current_database()";

/// What the server spent so far.
#[derive(Clone, Copy, Debug)]
pub struct Spending {
    /// Milliseconds of processor time of all its processes; `None` when it runs on another machine.
    pub processor_ms: Option<f64>,
    /// Rows written.
    pub rows: f64,
    /// Bytes of its write-ahead log.
    pub bytes: f64,
}

impl Spending {
    /// Reads the counters of the server at `url`, once sessions that have ended have reported.
    ///
    /// # Errors
    /// The server does not answer, or does not let this role read them.
    pub async fn read(url: &str) -> anyhow::Result<Self> {
        let processor_ms = processor_ms_of("postgres");
        tokio::time::sleep(REPORTED).await;
        let mut connection = PgConnection::connect(url).await?;
        let row = sqlx::query(COUNTERS).fetch_one(&mut connection).await?;
        let (rows, bytes): (i64, i64) = (row.try_get("rows")?, row.try_get("bytes")?);
        connection.close().await?;
        Ok(Self { processor_ms, rows: rows as f64, bytes: bytes as f64 })
    }

    /// What was spent after `before` for each of `count` things.
    #[must_use]
    pub fn since(self, before: Self, count: f64) -> Self {
        let spent = self.processor_ms.zip(before.processor_ms);
        Self {
            processor_ms: spent.map(|(after, before)| (after - before) / count),
            rows: (self.rows - before.rows) / count,
            bytes: (self.bytes - before.bytes) / count,
        }
    }
}
