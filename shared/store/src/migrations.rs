//! The migrations of both databases, embedded, in order.

use crate::StoreError;
use sqlx::SqlSafeStr;
use sqlx::migrate::{AppliedMigration, MigrateError, Migration, MigrationType, Migrator};
use std::borrow::Cow;

/// A migration: its number, its name, its text.
pub(crate) type File = (i64, &'static str, &'static str);

/// For SQLite.
pub(crate) const SQLITE: &[File] =
    &[(BASELINE, "baseline", include_str!("../../../migrations/sqlite/0001_baseline.sql"))];
/// For PostgreSQL.
pub(crate) const POSTGRES: &[File] =
    &[(BASELINE, "baseline", include_str!("../../../migrations/postgres/0001_baseline.sql"))];

/// The number of the migration that makes the schema of an empty database.
const BASELINE: i64 = 1;

/// The number of the newest migration.
pub(crate) fn last(files: &[File]) -> i64 {
    files.iter().map(|(version, _, _)| *version).max().unwrap_or_default()
}

/// Runs a tree.
pub(crate) fn migrator(files: &'static [File]) -> Migrator {
    let migrations = files
        .iter()
        .map(|(version, name, text)| {
            let text: &'static str = text;
            Migration::new(*version, Cow::Borrowed(name), MigrationType::Simple, text.into_sql_str(), false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}

/// Why a database could not be migrated, in a sentence that says what to do.
pub(crate) fn refused(error: MigrateError) -> StoreError {
    match error {
        MigrateError::VersionMissing(version) => newer(version),
        MigrateError::VersionMismatch(version) => StoreError::Unfit(format!(
            "migration {version} was applied to the database with another text than this binary has: it was built \
             from other sources. Use the binary that migrated it, or a newer release"
        )),
        MigrateError::Dirty(version) => StoreError::Unfit(format!(
            "migration {version} broke off half-way. Restore the database from a backup, then run `turnstone migrate`"
        )),
        error => StoreError::Database { action: "migrate the database", message: error.to_string() },
    }
}

/// Checks that this binary knows everything that was applied to a database. Missing migrations are not its business.
///
/// # Errors
/// [`StoreError::Unfit`] when the database was made from another baseline, or by a newer binary.
pub(crate) fn known(applied: &[AppliedMigration], files: &'static [File]) -> Result<(), StoreError> {
    let migrator = migrator(files);
    let baseline = migrator.iter().find(|migration| migration.version == BASELINE);
    let made_from = applied.iter().find(|migration| migration.version == BASELINE);
    if let (Some(baseline), Some(made_from)) = (baseline, made_from)
        && baseline.checksum != made_from.checksum
    {
        return Err(StoreError::Unfit(
            "an unreleased version of Turnstone made the database, and its schema cannot be upgraded. Start with an \
             empty database. To keep engagements, run `turnstone engagement export` with the binary that made the \
             database, and `turnstone engagement import` with this one; nothing was changed"
                .to_owned(),
        ));
    }
    match applied.iter().map(|migration| migration.version).max().filter(|newest| *newest > last(files)) {
        Some(newest) => Err(newer(newest)),
        None => Ok(()),
    }
}

/// The database is ahead of this binary.
fn newer(version: i64) -> StoreError {
    StoreError::Unfit(format!(
        "the database has migration {version}, which this binary does not know: a newer Turnstone made it. Use that \
         version or a later one; nothing was changed"
    ))
}
