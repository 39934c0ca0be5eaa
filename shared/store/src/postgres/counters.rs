//! Counters of a server's own work, for measurements.

use super::PostgresOptions;
use super::connection::{Address, failed};
use crate::{StoreError, sql};
use sqlx::{Connection, Row};

/// The amounts written since the server began to count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Rows inserted, updated or deleted in this database. Sessions report theirs when they end.
    pub rows: i64,
    /// Bytes of the write-ahead log, of all databases of the server.
    pub wal_bytes: i64,
}

/// Reads them over a connection of its own.
pub(super) async fn read(options: &PostgresOptions) -> Result<Counters, StoreError> {
    let mut conn = Address::of(options)?.connect().await?;
    let row = sqlx::raw_sql(sql::SELECT_COUNTERS.postgres)
        .fetch_one(&mut conn)
        .await
        .map_err(failed("read its counters"))?;
    let count = |column: &str| row.try_get::<i64, _>(column).map_err(failed("read its counters"));
    let counters = Counters { rows: count("rows")?, wal_bytes: count("bytes")? };
    // What is left of the connection is the server's to clean up.
    let _ = conn.close().await;
    Ok(counters)
}
