//! The migrations of both databases, embedded, in order, and which programs work with a migrated database.

use crate::StoreError;
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType};
use std::borrow::Cow;

/// A migration: its number, its name, its text.
///
/// The lines before the first statement declare what kind it is: see `migrations/README.md`.
pub type MigrationFile = (i64, &'static str, &'static str);

/// For SQLite.
pub(crate) const SQLITE: &[MigrationFile] =
    &[(BASELINE, "baseline", include_str!("../../../migrations/sqlite/0001_baseline.sql"))];
/// For PostgreSQL.
pub(crate) const POSTGRES: &[MigrationFile] =
    &[(BASELINE, "baseline", include_str!("../../../migrations/postgres/0001_baseline.sql"))];

/// The number of the migration that makes the schema of an empty database.
const BASELINE: i64 = 1;

/// The line that declares a migration after which older programs work.
const ADDITIVE: &str = "-- additive";
/// The line that declares a migration whose statements run one by one, outside of a transaction, on PostgreSQL.
const NO_TRANSACTION: &str = "-- no transaction";

/// A migration that was applied to a database.
pub(crate) struct Applied {
    pub version: i64,
    pub checksum: Vec<u8>,
    /// The last migration of the oldest program that works with the database as this migration left it. A database in which
    /// it is missing does not know of such programs.
    pub oldest_compatible: Option<i64>,
}

/// The number of the newest migration.
pub(crate) fn last(files: &[MigrationFile]) -> i64 {
    files.iter().map(|(version, _, _)| *version).max().unwrap_or_default()
}

/// Returns the digest of a migration's text.
pub(crate) fn checksum(file: &MigrationFile) -> Vec<u8> {
    let (version, name, text) = *file;
    let kind = MigrationType::Simple;
    Migration::new(version, Cow::Borrowed(name), kind, text.into_sql_str(), false).checksum.to_vec()
}

/// Returns true if the lines before the first statement have this one.
fn declares(file: &MigrationFile, line: &str) -> bool {
    file.2.lines().take_while(|line| line.is_empty() || line.starts_with("--")).any(|found| found == line)
}

/// Returns true if the statements of a migration run outside of a transaction.
pub(crate) fn runs_alone(file: &MigrationFile) -> bool {
    declares(file, NO_TRANSACTION)
}

/// Returns the last migration of the oldest program that works with a database after this migration.
pub(crate) fn oldest_compatible(files: &[MigrationFile], version: i64) -> i64 {
    let breaking = files.iter().filter(|file| file.0 <= version && !declares(file, ADDITIVE));
    breaking.map(|file| file.0).max().unwrap_or(version)
}

/// Returns the migrations of this program that were not applied to a database, in order.
///
/// # Errors
/// As [`known`]; and [`StoreError::Unfit`] when one was applied with another text.
pub(crate) fn missing<'a>(
    applied: &[Applied],
    files: &'a [MigrationFile],
) -> Result<Vec<&'a MigrationFile>, StoreError> {
    known(applied, files)?;
    let mut missing = Vec::new();
    for file in files {
        match applied.iter().find(|applied| applied.version == file.0) {
            Some(applied) if applied.checksum == checksum(file) => {}
            Some(_) => return Err(changed(file.0)),
            None => missing.push(file),
        }
    }
    Ok(missing)
}

/// Checks that this binary works with a database to which these migrations were applied. Missing migrations are not its
/// business.
///
/// # Errors
/// [`StoreError::Unfit`] when the database was made from another baseline, or by a newer binary whose schema this one cannot
/// use.
pub(crate) fn known(applied: &[Applied], files: &[MigrationFile]) -> Result<(), StoreError> {
    let baseline = files.iter().find(|file| file.0 == BASELINE);
    let made_from = applied.iter().find(|migration| migration.version == BASELINE);
    if let (Some(baseline), Some(made_from)) = (baseline, made_from)
        && checksum(baseline) != made_from.checksum
    {
        return Err(StoreError::Unfit(
            "an unreleased version of Turnstone made the database, and its schema cannot be upgraded. Start with an \
             empty database. To keep engagements, run `turnstone engagement export` with the binary that made the \
             database, and `turnstone engagement import` with this one; nothing was changed"
                .to_owned(),
        ));
    }
    let Some(newest) = applied.iter().max_by_key(|migration| migration.version) else { return Ok(()) };
    let own = last(files);
    if newest.version <= own || newest.oldest_compatible.is_some_and(|oldest| oldest <= own) {
        return Ok(());
    }
    Err(newer(newest, own))
}

/// The database is ahead of this binary.
fn newer(newest: &Applied, own: i64) -> StoreError {
    let (version, oldest) = (newest.version, newest.oldest_compatible.unwrap_or(newest.version));
    StoreError::Unfit(format!(
        "the database has migration {version}, which this binary does not know: a newer Turnstone made it, and its schema \
         needs a program with migration {oldest} or a later one, where this one has {own}. Use that version or a later \
         one; nothing was changed"
    ))
}

fn changed(version: i64) -> StoreError {
    StoreError::Unfit(format!(
        "migration {version} was applied to the database with another text than this binary has: it was built from other \
         sources. Use the binary that migrated it, or a newer release"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[MigrationFile] = &[
        (1, "baseline", "CREATE TABLE a (n BIGINT)"),
        (2, "column", "-- Of a.\n-- additive\nALTER TABLE a ADD COLUMN m BIGINT"),
        (3, "index", "-- additive\n-- no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS a_n ON a (n)"),
        (4, "move", "-- not additive\nALTER TABLE a DROP COLUMN m; -- additive"),
        (5, "again", "-- additive\nALTER TABLE a ADD COLUMN o BIGINT"),
    ];

    #[test]
    fn an_additive_migration_keeps_the_oldest_program() {
        let oldest: Vec<i64> = FILES.iter().map(|file| oldest_compatible(FILES, file.0)).collect();
        assert_eq!(oldest, [1, 1, 1, 4, 4]);
        let alone: Vec<i64> = FILES.iter().filter(|file| runs_alone(file)).map(|file| file.0).collect();
        assert_eq!(alone, [3]);
    }

    #[test]
    fn an_older_program_works_until_a_migration_that_is_not_additive() {
        let applied = |until: usize| -> Vec<Applied> {
            let row = |file: &MigrationFile| Applied {
                version: file.0,
                checksum: checksum(file),
                oldest_compatible: Some(oldest_compatible(FILES, file.0)),
            };
            FILES[..until].iter().map(row).collect()
        };
        for (database, program, works) in [
            (1, 1, true),
            (2, 1, true),
            (3, 1, true),
            (4, 1, false),
            (4, 3, false),
            (5, 4, true),
            (5, 3, false),
        ] {
            let known = known(&applied(database), &FILES[..program]);
            assert_eq!(known.is_ok(), works, "{database} {program}");
        }
        let numbers: Vec<i64> = missing(&applied(2), FILES).unwrap().iter().map(|file| file.0).collect();
        assert_eq!(numbers, [3, 4, 5]);
        let mut other = applied(3);
        other[1].checksum.clear();
        assert!(missing(&other, FILES).unwrap_err().to_string().contains("another text"));
    }
}
