//! Migrating a file. The list of migrations is that of sqlx, as on PostgreSQL.

use super::connection::failed;
use crate::StoreError;
use crate::migrations::{self, SQLITE};
use rusqlite::{Connection, TransactionBehavior};
use sqlx::migrate::{AppliedMigration, MigrateError};

const LIST: &str = "CREATE TABLE IF NOT EXISTS _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
     installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL, \
     execution_time BIGINT NOT NULL)";
const APPLIED: &str = "SELECT version, checksum FROM _sqlx_migrations ORDER BY version";
const APPLY: &str = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
     VALUES (?1, ?2, 1, ?3, 0)";

/// Brings the schema of the file up to date, in one transaction.
///
/// # Errors
/// [`StoreError::Unfit`] when the file was made by a newer version, or from other migrations.
pub(super) fn migrate(conn: &mut Connection) -> Result<(), StoreError> {
    let failed = failed("migrate the database");
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    tx.execute_batch(LIST).map_err(&failed)?;
    let applied = applied(&tx).map_err(&failed)?;
    migrations::known(&applied, SQLITE)?;
    for migration in migrations::migrator(SQLITE).iter() {
        match applied.iter().find(|applied| applied.version == migration.version) {
            Some(applied) if applied.checksum == migration.checksum => {}
            Some(_) => {
                return Err(migrations::refused(MigrateError::VersionMismatch(migration.version)));
            }
            None => {
                tx.execute_batch(migration.sql.as_str()).map_err(&failed)?;
                let row = (migration.version, &*migration.description, &*migration.checksum);
                tx.execute(APPLY, row).map_err(&failed)?;
            }
        }
    }
    tx.commit().map_err(&failed)
}

fn applied(conn: &Connection) -> rusqlite::Result<Vec<AppliedMigration>> {
    let mut statement = conn.prepare(APPLIED)?;
    let rows = statement.query_map((), |row| {
        Ok(AppliedMigration { version: row.get(0)?, checksum: row.get_ref(1)?.as_bytes()?.to_vec().into() })
    })?;
    rows.collect()
}
