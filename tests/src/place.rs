//! The place of a test's database, and queries to it from outside of the product.

use crate::fleet::Backend;
use crate::journal;
use crate::scratch;
use crate::servers::{Database, Postgres};
use crate::wait;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, FromRow};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, MachineClock};
use turnstone_store::{EncryptionKeys, PostgresOptions, PostgresStore, SqliteStore, Store, StoreError};

/// The pause before a database that is down is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// The deadline of every wait.
const PATIENCE: Duration = Duration::from_secs(120);

/// The invariants of a database that no worker uses.
const INVARIANTS: [(&str, &str); 10] = [
    ("jobs are active without a worker", "SELECT count(*) FROM jobs WHERE state = 'active'"),
    ("reservations are left behind", "SELECT count(*) FROM totals WHERE reserved <> 0"),
    ("jobs hold a reservation", "SELECT count(*) FROM jobs WHERE reserved <> 0"),
    (
        "budgets differ from what their jobs used",
        "SELECT count(*) FROM totals b WHERE b.scope = 'engagement' AND b.settled <> (SELECT sum(j.tokens_used) FROM jobs j JOIN engagements e ON e.seq = j.engagement_seq WHERE e.budget_seq = b.seq)",
    ),
    (
        "budgets differ from what their checkpoints say",
        "SELECT count(*) FROM totals b WHERE b.scope = 'engagement' AND b.settled <> (SELECT coalesce(sum(c.tokens_in + c.tokens_out), 0) FROM journal c JOIN jobs j ON j.seq = c.job_seq JOIN engagements e ON e.seq = j.engagement_seq WHERE e.budget_seq = b.seq) + (SELECT coalesce(sum(c.tokens_in + c.tokens_out), 0) FROM branches k JOIN inheritances i ON i.engagement_seq = k.job_seq JOIN journal c ON c.stream = i.source_seq AND c.turn < i.turn_until WHERE k.job_seq = b.seq)",
    ),
    ("phases were committed twice", journal::PHASES_TWICE),
    (
        "turns of completed jobs have not seven phases",
        "SELECT count(*) FROM (SELECT c.job_seq FROM journal c JOIN jobs j ON j.seq = c.job_seq WHERE c.phases > 0 AND j.state = 'completed' AND NOT EXISTS (SELECT 1 FROM journal e WHERE e.job_seq = j.seq AND e.names LIKE '%error.replaced%') GROUP BY c.job_seq, c.turn HAVING sum(c.phases) <> 7) AS odd",
    ),
    ("records lack phases or turns", journal::HOLES),
    ("streams of events have gaps", journal::GAPS),
    (
        "conversations have gaps",
        "SELECT count(*) FROM (SELECT m.stream FROM journal m WHERE m.messages > 0 GROUP BY m.stream HAVING max(m.last_message) <> sum(m.messages) + coalesce((SELECT sum(s.messages) FROM inheritances i JOIN journal s ON s.stream = i.source_seq AND s.turn < i.turn_until WHERE i.engagement_seq = m.stream), 0)) AS odd",
    ),
];

/// A database, by its address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Url(String),
}

impl From<&str> for Place {
    /// Reads a place in its displayed form.
    fn from(text: &str) -> Self {
        match text.starts_with("postgres://") {
            true => Self::Url(text.to_owned()),
            false => Self::File(text.into()),
        }
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<&Database> for Place {
    fn from(database: &Database) -> Self {
        Self::Url(database.url.clone())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Url(url) => write!(f, "{url}"),
        }
    }
}

/// Returns options with few connections, so that the shared server has enough for many processes.
fn options(url: &str) -> PostgresOptions {
    PostgresOptions { connections: 4, ..PostgresOptions::new(url) }
}

/// Returns an SQLite file with the whole schema and nothing else in it, made once per test process.
async fn migrated_file() -> &'static Path {
    static FILE: OnceCell<PathBuf> = OnceCell::const_new();
    FILE.get_or_init(|| async {
        let folder = scratch::folder();
        let store =
            SqliteStore::open(&folder.path().join("t.db"), Arc::new(SystemIds)).await.expect("the store");
        let copy = folder.keep().join("migrated.db");
        let from = Place::File(copy.with_file_name("t.db"));
        from.change(&format!("VACUUM INTO '{}'", copy.display())).await;
        drop(store);
        copy
    })
    .await
}

impl Place {
    /// Updates the schema. A new SQLite file becomes a copy of a migrated one, because a copy is quicker than
    /// a migration.
    pub async fn migrate(&self) {
        match self {
            Self::Url(url) => {
                PostgresStore::migrate(&options(url), &[]).await.expect("the migrations");
            }
            Self::File(path) if path.exists() => {}
            Self::File(path) => {
                std::fs::copy(migrated_file().await, path).expect("a copy of the migrated file");
            }
        }
    }

    /// Returns the store over it, and its time. A database that is just down is waited for.
    pub async fn open(&self) -> (Store, Arc<dyn Clock>) {
        self.open_sealed(None).await.expect("the store")
    }

    /// Returns the same with stored data encrypted by a key, if there is one; the store's refusal when it
    /// cannot be opened.
    pub async fn open_sealed(
        &self,
        keys: Option<&EncryptionKeys>,
    ) -> Result<(Store, Arc<dyn Clock>), StoreError> {
        match self {
            Self::File(path) => {
                let store = SqliteStore::open_sealed(path, keys, Arc::new(SystemIds)).await?;
                Ok((store, Arc::new(MachineClock::default())))
            }
            Self::Url(url) => {
                let options = PostgresOptions { encryption: keys.cloned(), ..options(url) };
                wait::found_within("the database can be opened", PATIENCE, async || {
                    match PostgresStore::open(&options, Arc::new(SystemIds)).await {
                        // The server is starting or recovering.
                        Err(StoreError::Unavailable { .. }) => None,
                        opened => Some(opened),
                    }
                })
                .await
            }
        }
    }

    /// Runs a statement that changes the database without the product.
    pub async fn change(&self, sql: &str) {
        self.try_change(sql).await.expect("the change");
    }

    /// Runs a statement that the database may refuse.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn try_change(&self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::File(path) => {
                let options = SqliteConnectOptions::new().filename(path).busy_timeout(PATIENCE);
                let mut conn = SqliteConnection::connect_with(&options).await?;
                sqlx::raw_sql(sql).execute(&mut conn).await.map(|_| ())
            }
            Self::Url(url) => {
                let mut conn = PgConnection::connect(url).await?;
                sqlx::raw_sql(sql).execute(&mut conn).await?;
                conn.close().await
            }
        }
    }

    /// Copies the database, so that [`Place::forget`] can bring this moment back.
    pub async fn remember(&self) {
        match self {
            Self::File(path) => self.change(&format!("VACUUM INTO '{}.kept'", path.display())).await,
            Self::Url(_) => {
                let copy = |table: &String| format!("CREATE TABLE kept.{table} AS TABLE {table};");
                let copies: String = self.tables().await.iter().map(copy).collect();
                self.change_freely(&format!(
                    "DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept; {copies}"
                ))
                .await;
            }
        }
    }

    /// Loses what was committed since [`Place::remember`], as a failover to a standby that missed it does, or a restored
    /// copy. Processes that use the database are not notified.
    pub async fn forget(&self) {
        let restore =
            |table: &String| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept.{table};");
        let restored: String = self.tables().await.iter().map(restore).collect();
        let sql = match self {
            Self::File(path) => format!(
                "PRAGMA foreign_keys = OFF; ATTACH '{}.kept' AS kept; BEGIN IMMEDIATE; {restored} COMMIT;",
                path.display()
            ),
            Self::Url(_) => format!(
                "BEGIN; SET LOCAL session_replication_role = replica; {restored} DROP SCHEMA kept CASCADE; COMMIT;"
            ),
        };
        self.change_freely(&sql).await;
    }

    /// Runs a statement that the product's own role may not run.
    async fn change_freely(&self, sql: &str) {
        match self {
            Self::File(_) => self.change(sql).await,
            Self::Url(url) => Self::Url(url.replacen("turnstone@", "postgres@", 1)).change(sql).await,
        }
    }

    /// Returns the names of all tables. A partition is part of its table.
    async fn tables(&self) -> Vec<String> {
        let sql = match self {
            Self::File(_) => {
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            }
            Self::Url(_) => {
                "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace \
                 AND relkind IN ('r', 'p') AND NOT relispartition"
            }
        };
        self.rows::<(String,)>(sql).await.into_iter().map(|(name,)| name).collect()
    }

    /// Returns one number.
    pub async fn number(&self, sql: &str) -> i64 {
        let rows: Vec<(i64,)> = self.rows(sql).await;
        let [(number,)] = rows.as_slice() else { panic!("{} rows and no number: {sql}", rows.len()) };
        *number
    }

    /// Waits until a number is at least this, and returns it.
    pub async fn at_least(&self, sql: &str, least: i64) -> i64 {
        let growing = async {
            loop {
                match self.number(sql).await {
                    enough if enough >= least => return enough,
                    _ => tokio::time::sleep(AGAIN).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, growing)
            .await
            .unwrap_or_else(|_| panic!("{least} is not reached: {sql}"))
    }

    /// Returns rows of whole numbers and texts.
    pub async fn rows<T>(&self, sql: &str) -> Vec<T>
    where
        T: for<'r> FromRow<'r, sqlx::sqlite::SqliteRow> + for<'r> FromRow<'r, sqlx::postgres::PgRow>,
        T: Send + Unpin,
    {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::File(path) => {
                let options = SqliteConnectOptions::new().filename(path);
                let mut conn = SqliteConnection::connect_with(&options).await.expect("the database file");
                sqlx::query_as(sql).fetch_all(&mut conn).await.expect("rows")
            }
            Self::Url(url) => {
                let mut conn = PgConnection::connect(url).await.expect("the database");
                let rows = sqlx::query_as(sql).fetch_all(&mut conn).await.expect("rows");
                conn.close().await.expect("the connection ends well");
                rows
            }
        }
    }

    /// Asserts the invariants of a database that no worker uses: no lease and no reservation remains. Every
    /// phase of every complete turn was committed exactly once and booked exactly once.
    pub async fn check(&self) {
        for (what, sql) in INVARIANTS {
            assert_eq!(self.number(sql).await, 0, "{what} in {self}");
        }
    }
}

/// The database that belongs to a fleet; it is deleted when this is dropped.
pub(crate) enum OwnDatabase {
    File(tempfile::TempDir),
    Database(Database),
}

impl OwnDatabase {
    pub(crate) async fn new(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite => {
                let file = Self::File(scratch::folder());
                file.place().migrate().await;
                file
            }
            Backend::Postgres => Self::Database(Postgres::shared().await.migrated().await),
        }
    }

    pub(crate) fn place(&self) -> Place {
        match self {
            Self::File(dir) => dir.path().join("turnstone.db").into(),
            Self::Database(database) => database.into(),
        }
    }
}
