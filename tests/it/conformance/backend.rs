//! A fresh store over either database, and a way to look into the database beside it.

use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Row};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use turnstone_domain::ids::SystemIds;
use turnstone_store::{PostgresOptions, PostgresStore, SqliteStore, Store};
use turnstone_tests::servers::{Database, Postgres};

/// Which database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// Where a test's database lives; it is removed with this.
pub enum Place {
    Sqlite(TempDir),
    Postgres(Database),
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
            Backend::Sqlite => Self::Sqlite(tempfile::tempdir().unwrap()),
            Backend::Postgres => Self::Postgres(Postgres::shared().await.database().await),
        }
    }

    fn file(dir: &TempDir) -> PathBuf {
        dir.path().join("t.db")
    }

    /// Migrates the database, where opening it does not, and opens a store over it.
    pub async fn open(&self) -> Store {
        match self {
            Self::Sqlite(dir) => SqliteStore::open(&Self::file(dir), Arc::new(SystemIds)).await.unwrap(),
            Self::Postgres(database) => {
                let options = PostgresOptions { connections: 4, ..PostgresOptions::new(&database.url) };
                PostgresStore::migrate(&options, &[]).await.unwrap();
                PostgresStore::open(&options, Arc::new(SystemIds)).await.unwrap().0
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
            Self::Postgres(database) => {
                let mut conn = PgConnection::connect(&database.url).await.unwrap();
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
            Self::Postgres(database) => {
                let mut conn = PgConnection::connect(&database.url).await.unwrap();
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

/// A fresh store.
pub async fn open(backend: Backend) -> Opened {
    let place = Place::empty(backend).await;
    let store = place.open().await;
    Opened { store, place }
}
