//! A fresh store over either database, and a way to look into the database beside it.

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use turnstone_domain::ids::SystemIds;
use turnstone_store::{EncryptionKeys, PostgresOptions, PostgresStore, SqliteStore, Store, StoreError};
use turnstone_tests::servers::{Database, PgBouncer, Postgres};

/// Which database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    Sqlite,
    /// SQLite, and what is stored is encrypted.
    Sealed,
    Postgres,
    /// PostgreSQL behind PgBouncer in transaction mode.
    Pooled,
}

impl Backend {
    /// SQLite and PostgreSQL, or SQLite alone where PostgreSQL is missing and cannot be installed.
    pub const PLAIN: &[Self] =
        if cfg!(no_postgres) { &[Self::Sqlite] } else { &[Self::Sqlite, Self::Postgres] };
}

/// Where a test's database lives.
pub enum Place {
    Sqlite(Folder),
    Postgres(Lent),
}

/// Where an SQLite file is, and what it is encrypted with.
pub struct Folder {
    dir: TempDir,
    keys: Option<EncryptionKeys>,
}

impl Folder {
    fn new(sealed: bool) -> Self {
        let key = || EncryptionKeys::new("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", &[] as &[&str]);
        Self { dir: tempfile::tempdir().unwrap(), keys: sealed.then(|| key().unwrap()) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Databases that cases have used and others may use again: to make and to remove one takes longer than a case.
static USED: Mutex<Vec<(Database, Option<PgBouncer>)>> = Mutex::new(Vec::new());

/// A database that is used by one case at a time.
pub struct Lent {
    pub url: String,
    database: Option<Database>,
    bouncer: Option<PgBouncer>,
    again: bool,
}

impl Lent {
    fn of(database: Database, bouncer: Option<PgBouncer>) -> Self {
        Self { url: database.url.clone(), database: Some(database), bouncer, again: false }
    }

    async fn new(backend: Backend) -> Self {
        let postgres = Postgres::shared().await;
        let database = postgres.database().await;
        let bouncer = match backend {
            Backend::Pooled => Some(PgBouncer::start(postgres, &database).await),
            _ => None,
        };
        Self::of(database, bouncer)
    }

    fn used(backend: Backend) -> Option<Self> {
        let mut used = USED.lock().unwrap();
        let at = used.iter().position(|(_, bouncer)| bouncer.is_some() == (backend == Backend::Pooled))?;
        let (database, bouncer) = used.swap_remove(at);
        Some(Self::of(database, bouncer))
    }

    /// How a store reaches it. Only migrations always go the direct way.
    fn options(&self) -> PostgresOptions {
        let options = PostgresOptions { connections: 4, ..PostgresOptions::new(&self.url) };
        match &self.bouncer {
            Some(bouncer) => {
                PostgresOptions { url: bouncer.url().to_owned(), transaction_pooler: true, ..options }
            }
            None => options,
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.again {
            let used = self.database.take().map(|database| (database, self.bouncer.take()));
            USED.lock().unwrap_or_else(PoisonError::into_inner).extend(used);
        }
    }
}

/// A store over a database of its own.
pub struct Opened {
    pub store: Store,
    pub place: Place,
}

impl Place {
    /// A place without a database yet, or with an empty one.
    pub async fn empty(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite | Backend::Sealed => Self::Sqlite(Folder::new(backend == Backend::Sealed)),
            Backend::Postgres | Backend::Pooled => Self::Postgres(Lent::new(backend).await),
        }
    }

    fn file(dir: &Folder) -> PathBuf {
        dir.path().join("t.db")
    }

    /// Migrates the database, where opening it does not, and opens a store over it.
    pub async fn open(&self) -> Store {
        match self {
            Self::Sqlite(dir) => {
                let opened =
                    SqliteStore::open_sealed(&Self::file(dir), dir.keys.as_ref(), Arc::new(SystemIds)).await;
                opened.unwrap()
            }
            Self::Postgres(lent) => {
                PostgresStore::migrate(&PostgresOptions::new(&lent.url), &[]).await.unwrap();
                let mut opened = PostgresStore::open(&lent.options(), Arc::new(SystemIds)).await;
                // A pooler may still hold connections that ended with the case before: at most twenty.
                for _ in 0..20 {
                    if matches!(opened, Err(StoreError::Unavailable { .. })) && lent.bouncer.is_some() {
                        opened = PostgresStore::open(&lent.options(), Arc::new(SystemIds)).await;
                    }
                }
                opened.unwrap().0
            }
        }
    }

    /// Runs statements and returns the first column of the first row of the last one; 0 when there is none.
    pub async fn query(&self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(dir) => {
                let options = SqliteConnectOptions::new().filename(Self::file(dir)).create_if_missing(true);
                let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
                let rows = sqlx::raw_sql(sql).fetch_all(&mut conn).await.unwrap();
                conn.close().await.unwrap();
                rows.last().map_or(0, |row| row.get(0))
            }
            Self::Postgres(lent) => {
                let mut conn = PgConnection::connect(&lent.url).await.unwrap();
                let rows = sqlx::raw_sql(sql).fetch_all(&mut conn).await.unwrap();
                conn.close().await.unwrap();
                rows.last().map_or(0, |row| row.get(0))
            }
        }
    }

    /// A list of texts, one per row.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(dir) => {
                let options = SqliteConnectOptions::new().filename(Self::file(dir));
                let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
                let rows = sqlx::raw_sql(sql).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            Self::Postgres(lent) => {
                let mut conn = PgConnection::connect(&lent.url).await.unwrap();
                let rows = sqlx::raw_sql(sql).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }
}

impl Opened {
    /// See [`Place::query`].
    pub async fn query(&self, sql: &str) -> i64 {
        self.place.query(sql).await
    }

    /// Others may use the database after this.
    fn again(mut self) -> Self {
        if let Place::Postgres(lent) = &mut self.place {
            lent.again = true;
        }
        self
    }
}

/// A fresh store.
pub async fn open(backend: Backend) -> Opened {
    if matches!(backend, Backend::Postgres | Backend::Pooled)
        && let Some(lent) = Lent::used(backend)
    {
        let place = Place::Postgres(lent);
        empty_again(&place).await;
        return Opened { store: place.open().await, place }.again();
    }
    let place = Place::empty(backend).await;
    Opened { store: place.open().await, place }.again()
}

/// Empties a database that was migrated before, and makes sure that nobody uses it any more.
async fn empty_again(place: &Place) {
    place
        .query(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()",
        )
        .await;
    let tables = "SELECT tablename FROM pg_tables JOIN pg_class ON relname = tablename AND NOT relispartition \
                  WHERE schemaname = 'public' AND tablename NOT IN ('_sqlx_migrations', 'statistics_mark', 'queues')";
    let mut sql = String::from("BEGIN; ");
    for table in place.texts(tables).await {
        sql.push_str(&format!("DELETE FROM {table}; "));
    }
    sql.push_str(
        "DELETE FROM queues WHERE name NOT IN ('default', 'ai-agents'); UPDATE statistics_mark SET ended_at = 0; \
         ALTER SEQUENCE jobs_seq RESTART; COMMIT",
    );
    place.query(&sql).await;
}
