//! Running one statement: bulk writes, reads, and rows into values.

use super::rows::Inconsistency;
use crate::StoreError;
use serde::Serialize;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

/// A database error as ours.
pub(super) fn failed(action: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| StoreError::Database { action, message: error.to_string() }
}

/// Values as the JSON text that `json_each` takes apart.
pub(super) fn as_json<T: Serialize + ?Sized>(values: &T) -> Result<String, StoreError> {
    serde_json::to_string(values)
        .map_err(|e| StoreError::Database { action: "encode a batch", message: e.to_string() })
}

/// Writes many rows with one statement and demands that each of them was written.
pub(super) async fn write_all<T: Serialize>(
    conn: &mut SqliteConnection,
    action: &'static str,
    sql: &'static str,
    rows: &[T],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let done = sqlx::query(sql).bind(as_json(rows)?).execute(conn).await.map_err(failed(action))?;
    if done.rows_affected() == rows.len() as u64 {
        return Ok(());
    }
    Err(StoreError::Database {
        action,
        message: format!("{} of {} rows were written", done.rows_affected(), rows.len()),
    })
}

/// Reads the rows that belong to the given keys.
pub(super) async fn read_by<K: Serialize, T>(
    conn: &mut SqliteConnection,
    action: &'static str,
    sql: &'static str,
    keys: &[K],
    decode: fn(&SqliteRow) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(sql).bind(as_json(keys)?).fetch_all(conn).await.map_err(failed(action))?;
    decode_all(&rows, decode)
}

/// Decodes all rows.
pub(super) fn decode_all<T>(
    rows: &[SqliteRow],
    decode: fn(&SqliteRow) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(|row| decode(row).map_err(StoreError::from)).collect()
}
