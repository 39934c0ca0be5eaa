//! Migrating a database that a fleet uses meanwhile.
//!
//! A statement that waits for a lock on a table makes every later statement on it wait as well. So a migration waits only for a
//! short time, gives up, and is tried again after a pause, in which the others run. Indexes on large tables are made
//! without such a lock, by migrations that run outside of a transaction and can be interrupted.

use super::connection::{Address, failed};
use super::fitness;
use crate::StoreError;
use crate::migrations::{self, MigrationFile};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::Instant;

/// The longest that a migration waits for a lock, and other statements behind it.
const LOCK_TIMEOUT: &str = "2s";
/// The pauses between the tries; the last one is repeated.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(10)];
/// How long a migration is tried again.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How often the holder of a lock is looked up while a statement runs.
const LOOK: Duration = Duration::from_millis(500);
/// The advisory lock of the one process that migrates: `turnston` in ASCII.
const ALONE: i64 = 0x7475_726e_7374_6f6e;

const LIST: &str = "CREATE TABLE IF NOT EXISTS _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
     installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL, \
     execution_time BIGINT NOT NULL, oldest_compatible BIGINT); \
     ALTER TABLE _sqlx_migrations ADD COLUMN IF NOT EXISTS oldest_compatible BIGINT";

/// Applies the missing migrations, and returns their names.
pub(super) async fn migrate(address: &Address, files: &[MigrationFile]) -> Result<Vec<String>, StoreError> {
    let mut conn = address.connect_unhurried().await?;
    fitness::takes_writes(&mut conn).await?;
    if migrations::missing(&fitness::applied(&mut conn).await?, files)?.is_empty() {
        return Ok(Vec::new());
    }
    let watch = address.connect().await?;
    let mut migrating = Migrating { conn, watch, begun: Instant::now() };
    // The lock lives in a session, which a pooler does not give us; the migrations are transactions of their own.
    if !address.is_pooled() {
        migrating.be_alone().await?;
    }
    migrating.in_transaction("the list of migrations", LIST).await?;
    let mut names = Vec::new();
    for file in migrations::missing(&fitness::applied(&mut migrating.conn).await?, files)? {
        let name = format!("{:04} {}", file.0, file.1);
        let note = note(file, files);
        if migrations::runs_alone(file) {
            for statement in statements(file.2) {
                migrating.alone(&name, &statement).await?;
            }
            migrating.in_transaction(&name, &note).await?;
        } else {
            migrating.in_transaction(&name, &format!("{}\n;{note}", file.2)).await?;
        }
        names.push(name);
    }
    Ok(names)
}

/// Returns the statement that notes a migration as applied. Names are those of files, without quotes.
fn note(file: &MigrationFile, files: &[MigrationFile]) -> String {
    let (version, name, _) = *file;
    let mut digest = String::new();
    for byte in migrations::checksum(file) {
        let _ = write!(digest, "{byte:02x}");
    }
    let oldest = migrations::oldest_compatible(files, version);
    format!(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time, oldest_compatible) \
         VALUES ({version}, '{name}', true, '\\x{digest}', 0, {oldest})"
    )
}

/// Returns the statements of a text that has no `;` within them, without comments.
fn statements(text: &str) -> Vec<String> {
    let code: Vec<&str> =
        text.lines().map(|line| line.split("--").next().unwrap_or_default().trim()).collect();
    code.join(" ").split(';').map(|statement| statement.trim().to_owned()).filter(|s| !s.is_empty()).collect()
}

/// Returns the name of the index that a statement makes outside of a transaction.
fn index_of(statement: &str) -> Option<&str> {
    let (_, after) = statement.split_once("INDEX CONCURRENTLY IF NOT EXISTS ")?;
    after.split_whitespace().next()
}

struct Migrating {
    conn: PgConnection,
    /// Looks up who holds a lock.
    watch: PgConnection,
    begun: Instant,
}

impl Migrating {
    /// Waits until no other process migrates. It asks again and again: a session that waited would have a snapshot, and an
    /// index that the other one makes would wait for it.
    async fn be_alone(&mut self) -> Result<(), StoreError> {
        let failed = failed("lock the migrations");
        let (begun, mut logged) = (Instant::now(), false);
        loop {
            let text = AssertSqlSafe(format!("SELECT pg_try_advisory_lock({ALONE}) AS is_alone"));
            let row = sqlx::raw_sql(text).fetch_one(&mut self.conn).await.map_err(&failed)?;
            if row.try_get("is_alone").map_err(&failed)? {
                self.begun = Instant::now();
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(StoreError::Unavailable {
                    action: "be migrated",
                    message: format!(
                        "this process waited {} minutes for another one that migrates. When that has ended, run `turnstone \
                         migrate` again; this one changed nothing",
                        PATIENCE.as_secs() / 60
                    ),
                });
            }
            if !std::mem::replace(&mut logged, true) {
                tracing::warn!("another process migrates the database; this one waits until it has ended");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Runs statements in a transaction that waits for no lock longer than [`LOCK_TIMEOUT`], until it succeeds.
    async fn in_transaction(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        let text = format!(
            "BEGIN; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; SET LOCAL statement_timeout = 0; {text}\n; COMMIT"
        );
        for pause in PAUSES.into_iter().chain(std::iter::repeat(PAUSES[PAUSES.len() - 1])) {
            let mut holders = String::new();
            let Err(error) = self.watched(&text, |found| holders = found.to_owned()).await else {
                return Ok(());
            };
            // A connection that broke rolls back by itself.
            let _ = sqlx::raw_sql("ROLLBACK").execute(&mut self.conn).await;
            let code = error.as_database_error().and_then(|error| error.code());
            if !matches!(code.as_deref(), Some("55P03" | "40P01")) {
                return Err(failed("migrate the database")(error));
            }
            if holders.is_empty() {
                "a process that this user cannot see".clone_into(&mut holders);
            }
            if self.begun.elapsed() > PATIENCE {
                return Err(StoreError::Unavailable {
                    action: "be migrated",
                    message: format!(
                        "{name} waited for a lock for {} minutes, which {holders} holds. End it, then run `turnstone \
                         migrate` again; the migration changed nothing",
                        PATIENCE.as_secs() / 60
                    ),
                });
            }
            tracing::warn!(
                migration = name,
                holders,
                pause_s = pause.as_secs(),
                "the migration waits for a lock; others run during the pause, then it is tried again"
            );
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Runs a statement outside of a transaction, as long as it takes. Reads and writes of its table go on meanwhile. An index
    /// that an interrupted run left behind is invalid, and is made again.
    async fn alone(&mut self, name: &str, statement: &str) -> Result<(), StoreError> {
        let failed = failed("migrate the database");
        if let Some(index) = index_of(statement) {
            let text = format!(
                "SELECT count(*) AS found FROM pg_index WHERE indexrelid = to_regclass('{index}') AND NOT indisvalid"
            );
            let row = sqlx::raw_sql(AssertSqlSafe(text)).fetch_one(&mut self.conn).await.map_err(&failed)?;
            if row.try_get::<i64, _>("found").map_err(&failed)? > 0 {
                tracing::warn!(
                    migration = name,
                    index,
                    "an interrupted run left an invalid index; it is made again"
                );
                let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {index}");
                self.watched(&drop, |holders| waits(name, holders)).await.map_err(&failed)?;
            }
        }
        self.watched(statement, |holders| waits(name, holders)).await.map_err(&failed)
    }

    /// Runs a text, and reports the holders of the locks that it waits for, when they change.
    async fn watched(&mut self, text: &str, mut report: impl FnMut(&str)) -> Result<(), sqlx::Error> {
        let pid = sqlx::raw_sql("SELECT pg_backend_pid() AS pid").fetch_one(&mut self.conn).await?;
        let pid: i32 = pid.try_get("pid")?;
        let run = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut self.conn);
        tokio::pin!(run);
        let mut reported = String::new();
        loop {
            tokio::select! {
                done = &mut run => return done.map(|_| ()),
                () = tokio::time::sleep(LOOK) => {}
            }
            let holders = holders(&mut self.watch, pid).await.unwrap_or_default();
            if !holders.is_empty() && holders != reported {
                report(&holders);
                reported = holders;
            }
        }
    }
}

fn waits(name: &str, holders: &str) {
    tracing::warn!(
        migration = name,
        holders,
        "the migration waits for transactions; no other statement waits for it"
    );
}

/// Returns the processes that keep this one waiting, as far as this user may see them.
async fn holders(conn: &mut PgConnection, pid: i32) -> Result<String, sqlx::Error> {
    let text = format!(
        "SELECT coalesce(string_agg(format('process %s (%s, %s, %s)', pid, coalesce(usename, 'unknown'), \
         coalesce(nullif(application_name, ''), 'unnamed'), coalesce(state, 'unknown')), ', ' ORDER BY pid), '') AS holders \
         FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids({pid}))"
    );
    sqlx::raw_sql(AssertSqlSafe(text)).fetch_one(conn).await?.try_get("holders")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_of_a_migration_without_a_transaction_run_one_by_one() {
        let text = "-- additive\n-- no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_later\n    ON jobs (n); -- one\n\
                    DROP INDEX CONCURRENTLY IF EXISTS jobs_old;\n";
        let statements = statements(text);
        assert_eq!(
            statements,
            [
                "CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_later ON jobs (n)",
                "DROP INDEX CONCURRENTLY IF EXISTS jobs_old"
            ]
        );
        let indexes: Vec<_> = statements.iter().map(|statement| index_of(statement)).collect();
        assert_eq!(indexes, [Some("jobs_later"), None]);
    }
}
