//! Migrating a file. The list of migrations is that of sqlx, as on PostgreSQL.

use super::connection::failed;
use crate::StoreError;
use crate::migrations::{self, Applied, SQLITE};
use rusqlite::{Connection, TransactionBehavior};

const LIST: &str = "CREATE TABLE IF NOT EXISTS _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
     installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL, \
     execution_time BIGINT NOT NULL, oldest_compatible BIGINT)";
/// Counts the column that a list of another program lacks.
const LISTED: &str =
    "SELECT count(*) FROM pragma_table_info('_sqlx_migrations') WHERE name = 'oldest_compatible'";
const ADD_COLUMN: &str = "ALTER TABLE _sqlx_migrations ADD COLUMN oldest_compatible BIGINT";
const APPLIED: &str = "SELECT version, checksum, oldest_compatible FROM _sqlx_migrations ORDER BY version";
const APPLY: &str = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time, oldest_compatible) \
     VALUES (?1, ?2, 1, ?3, 0, ?4)";

/// Brings the schema of the file up to date, in one transaction.
///
/// # Errors
/// [`StoreError::Unfit`] when this program cannot use the schema of a newer version, or the file was made from other
/// migrations.
pub(super) fn migrate(conn: &mut Connection) -> Result<(), StoreError> {
    let failed = failed("migrate the database");
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    tx.execute_batch(LIST).map_err(&failed)?;
    if tx.query_row(LISTED, (), |row| row.get::<_, i64>(0)).map_err(&failed)? == 0 {
        tx.execute_batch(ADD_COLUMN).map_err(&failed)?;
    }
    for file in migrations::missing(&applied(&tx).map_err(&failed)?, SQLITE)? {
        let (version, name, text) = *file;
        tx.execute_batch(text).map_err(&failed)?;
        let oldest = migrations::oldest_compatible(SQLITE, version);
        tx.execute(APPLY, (version, name, migrations::checksum(file), oldest)).map_err(&failed)?;
    }
    tx.commit().map_err(&failed)
}

fn applied(conn: &Connection) -> rusqlite::Result<Vec<Applied>> {
    let mut statement = conn.prepare(APPLIED)?;
    let rows = statement.query_map((), |row| {
        Ok(Applied {
            version: row.get(0)?,
            checksum: row.get_ref(1)?.as_bytes()?.to_vec(),
            oldest_compatible: row.get(2)?,
        })
    })?;
    rows.collect()
}
