//! The migrations of both databases, embedded, in order.

use crate::StoreError;
use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use std::borrow::Cow;

/// A migration: its number, its name, its text.
pub(crate) type File = (i64, &'static str, &'static str);

/// For SQLite.
pub(crate) const SQLITE: &[File] = &[
    (1, "main job", include_str!("../../../migrations/sqlite/0001_main_job.sql")),
    (2, "fleet", include_str!("../../../migrations/sqlite/0002_fleet.sql")),
    (3, "ojs", include_str!("../../../migrations/sqlite/0003_ojs.sql")),
    (4, "encryption", include_str!("../../../migrations/sqlite/0004_encryption.sql")),
    (5, "ojs limits", include_str!("../../../migrations/sqlite/0005_ojs_limits.sql")),
    (8, "errors", include_str!("../../../migrations/sqlite/0008_errors.sql")),
    (9, "session state", include_str!("../../../migrations/sqlite/0009_session_state.sql")),
    (10, "delegation", include_str!("../../../migrations/sqlite/0010_delegation.sql")),
    (11, "budgets", include_str!("../../../migrations/sqlite/0011_budgets.sql")),
    (13, "forks", include_str!("../../../migrations/sqlite/0013_forks.sql")),
    (14, "terms of engagements", include_str!("../../../migrations/sqlite/0014_terms_of_engagements.sql")),
    (15, "credentials", include_str!("../../../migrations/sqlite/0015_credentials.sql")),
    (16, "reviewers", include_str!("../../../migrations/sqlite/0016_reviewers.sql")),
    (17, "inputs", include_str!("../../../migrations/sqlite/0017_inputs.sql")),
    (18, "runs", include_str!("../../../migrations/sqlite/0018_runs.sql")),
    (19, "unused definitions", include_str!("../../../migrations/sqlite/0019_unused_definitions.sql")),
    (21, "what others read", include_str!("../../../migrations/sqlite/0021_what_others_read.sql")),
    (22, "members", include_str!("../../../migrations/sqlite/0022_members.sql")),
    (23, "artifacts", include_str!("../../../migrations/sqlite/0023_artifacts.sql")),
    (26, "guardrail checks", include_str!("../../../migrations/sqlite/0026_guardrail_checks.sql")),
    (29, "answers", include_str!("../../../migrations/sqlite/0029_answers.sql")),
    (30, "memories", include_str!("../../../migrations/sqlite/0030_memories.sql")),
    (31, "definitions of inputs", include_str!("../../../migrations/sqlite/0031_definitions_of_inputs.sql")),
    (32, "elsewhere", include_str!("../../../migrations/sqlite/0032_elsewhere.sql")),
    (33, "breakers by share", include_str!("../../../migrations/sqlite/0033_breakers_by_share.sql")),
    (36, "workflow queues", include_str!("../../../migrations/sqlite/0036_workflow_queues.sql")),
];
/// For PostgreSQL.
pub(crate) const POSTGRES: &[File] = &[
    (1, "main job", include_str!("../../../migrations/postgres/0001_main_job.sql")),
    (2, "fleet", include_str!("../../../migrations/postgres/0002_fleet.sql")),
    (3, "ojs", include_str!("../../../migrations/postgres/0003_ojs.sql")),
    (4, "encryption", include_str!("../../../migrations/postgres/0004_encryption.sql")),
    (5, "ojs limits", include_str!("../../../migrations/postgres/0005_ojs_limits.sql")),
    (8, "errors", include_str!("../../../migrations/postgres/0008_errors.sql")),
    (9, "session state", include_str!("../../../migrations/postgres/0009_session_state.sql")),
    (10, "delegation", include_str!("../../../migrations/postgres/0010_delegation.sql")),
    (11, "budgets", include_str!("../../../migrations/postgres/0011_budgets.sql")),
    (13, "forks", include_str!("../../../migrations/postgres/0013_forks.sql")),
    (14, "terms of engagements", include_str!("../../../migrations/postgres/0014_terms_of_engagements.sql")),
    (15, "credentials", include_str!("../../../migrations/postgres/0015_credentials.sql")),
    (16, "reviewers", include_str!("../../../migrations/postgres/0016_reviewers.sql")),
    (17, "inputs", include_str!("../../../migrations/postgres/0017_inputs.sql")),
    (18, "runs", include_str!("../../../migrations/postgres/0018_runs.sql")),
    (19, "unused definitions", include_str!("../../../migrations/postgres/0019_unused_definitions.sql")),
    (21, "what others read", include_str!("../../../migrations/postgres/0021_what_others_read.sql")),
    (22, "members", include_str!("../../../migrations/postgres/0022_members.sql")),
    (23, "artifacts", include_str!("../../../migrations/postgres/0023_artifacts.sql")),
    (26, "guardrail checks", include_str!("../../../migrations/postgres/0026_guardrail_checks.sql")),
    (29, "answers", include_str!("../../../migrations/postgres/0029_answers.sql")),
    (30, "memories", include_str!("../../../migrations/postgres/0030_memories.sql")),
    (
        31,
        "definitions of inputs",
        include_str!("../../../migrations/postgres/0031_definitions_of_inputs.sql"),
    ),
    (32, "elsewhere", include_str!("../../../migrations/postgres/0032_elsewhere.sql")),
    (33, "breakers by share", include_str!("../../../migrations/postgres/0033_breakers_by_share.sql")),
    (36, "workflow queues", include_str!("../../../migrations/postgres/0036_workflow_queues.sql")),
];

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

/// The database is ahead of this binary.
pub(crate) fn newer(version: i64) -> StoreError {
    StoreError::Unfit(format!(
        "the database has migration {version}, which this binary does not know: a newer Turnstone made it. Use that \
         version or a later one; nothing was changed"
    ))
}
