//! A fresh store on each database, and direct SQL on the database beside it.

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use turnstone_domain::ids::SystemIds;
use turnstone_store::{EncryptionKeys, PostgresOptions, PostgresStore, SqliteStore, Store};
use turnstone_tests::scratch;
use turnstone_tests::servers::{Database, PgBouncer, Postgres};

/// The database of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    Sqlite,
    /// SQLite with encryption at rest.
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

/// Where the database of a test is.
pub enum Place {
    Sqlite(Folder),
    Postgres(Site),
}

/// The folder of an SQLite file, and its encryption keys.
pub struct Folder {
    dir: TempDir,
    keys: Option<EncryptionKeys>,
}

impl Folder {
    fn new(sealed: bool) -> Self {
        let key = || EncryptionKeys::new("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", &[] as &[&str]);
        Self { dir: scratch::folder(), keys: sealed.then(|| key().unwrap()) }
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// A database that is used by one case at a time, and how stores reach it.
pub struct Site {
    pub url: String,
    _database: Database,
    bouncer: Option<PgBouncer>,
}

impl Site {
    async fn new(database: Database, backend: Backend) -> Self {
        let bouncer = match backend {
            Backend::Pooled => Some(PgBouncer::start(Postgres::shared().await, &database).await),
            _ => None,
        };
        Self { url: database.url.clone(), _database: database, bouncer }
    }

    /// Returns the options of a store. Migrations connect directly, the store through the pooler if there is one.
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

/// A store over a database of its own.
pub struct Opened {
    pub store: Store,
    pub place: Place,
}

impl Place {
    /// Returns a place without a database, or with an empty one.
    pub async fn empty(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite | Backend::Sealed => Self::Sqlite(Folder::new(backend == Backend::Sealed)),
            Backend::Postgres | Backend::Pooled => {
                let database = Postgres::shared().await.database().await;
                Self::Postgres(Site::new(database, backend).await)
            }
        }
    }

    fn file(dir: &Folder) -> PathBuf {
        dir.path().join("t.db")
    }

    /// Returns the same database for queries and changes from outside of the product.
    pub fn beside(&self) -> turnstone_tests::Place {
        match self {
            Self::Sqlite(dir) => Self::file(dir).into(),
            Self::Postgres(site) => site.url.as_str().into(),
        }
    }

    /// Returns a place with a migrated, empty database.
    async fn migrated(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite | Backend::Sealed => {
                let folder = Folder::new(backend == Backend::Sealed);
                turnstone_tests::Place::from(Self::file(&folder)).migrate().await;
                Self::Sqlite(folder)
            }
            Backend::Postgres | Backend::Pooled => {
                let database = Postgres::shared().await.migrated().await;
                Self::Postgres(Site::new(database, backend).await)
            }
        }
    }

    /// Migrates the database and opens a store over it.
    pub async fn migrate_and_open(&self) -> Store {
        if let Self::Postgres(site) = self {
            PostgresStore::migrate(&PostgresOptions::new(&site.url), &[]).await.unwrap();
        }
        self.open().await
    }

    /// Opens a store over the database.
    pub async fn open(&self) -> Store {
        match self {
            Self::Sqlite(dir) => {
                let opened =
                    SqliteStore::open_sealed(&Self::file(dir), dir.keys.as_ref(), Arc::new(SystemIds)).await;
                opened.unwrap()
            }
            Self::Postgres(site) => {
                PostgresStore::open(&site.options(), Arc::new(SystemIds)).await.unwrap().0
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
            Self::Postgres(site) => {
                let mut conn = PgConnection::connect(&site.url).await.unwrap();
                let rows = sqlx::raw_sql(sql).fetch_all(&mut conn).await.unwrap();
                conn.close().await.unwrap();
                rows.last().map_or(0, |row| row.get(0))
            }
        }
    }

    /// Returns the first column of every row.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(dir) => {
                let options = SqliteConnectOptions::new().filename(Self::file(dir));
                let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
                let rows = sqlx::raw_sql(sql).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            Self::Postgres(site) => {
                let mut conn = PgConnection::connect(&site.url).await.unwrap();
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
}

/// Opens a fresh store.
pub async fn open(backend: Backend) -> Opened {
    let place = Place::migrated(backend).await;
    Opened { store: place.open().await, place }
}
