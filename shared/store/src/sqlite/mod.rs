//! The embedded store: one SQLite file, WAL, `synchronous=FULL`, one writer, readers apart.

mod caller;
mod definitions;
mod ops;
mod rows;
mod sql;
mod statement;
mod unit;
mod views;
mod writer;

use crate::{Doorbell, Store, StoreError};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqlSafeStr};
use statement::failed;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use turnstone_domain::Ids;
use writer::{Work, Writer};

/// Requests that may wait for the writer before callers have to wait to hand theirs over.
const INBOX: usize = 4096;
/// How long a connection waits for another process's write before it gives up.
const BUSY: Duration = Duration::from_secs(10);

/// The embedded store. Clones share the writer and the readers.
#[derive(Clone)]
pub struct SqliteStore {
    readers: SqlitePool,
    writer: mpsc::Sender<Work>,
}

impl SqliteStore {
    /// Opens the file (and creates it if need be), migrates it, and starts the writer on the current runtime.
    ///
    /// # Errors
    /// When the file cannot be opened, is damaged, or was written by a newer version.
    pub async fn open(path: &Path, ids: Arc<dyn Ids>) -> Result<Store, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY)
            .foreign_keys(false)
            .pragma("temp_store", "MEMORY")
            .pragma("wal_autocheckpoint", "4000")
            .disable_statement_logging();
        let mut conn = options.connect().await.map_err(failed("open the database file"))?;
        migrator().run(&mut conn).await.map_err(|e| StoreError::Database {
            action: "migrate the database file",
            message: e.to_string(),
        })?;
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.read_only(true).create_if_missing(false))
            .await
            .map_err(failed("open the database file for reading"))?;
        let doorbell = Doorbell::default();
        let (writer, inbox) = mpsc::channel(INBOX);
        tokio::spawn(Writer::new(conn, ids, doorbell.clone()).run(inbox));
        let store = Arc::new(Self { readers, writer });
        Ok(Store {
            intake: Arc::clone(&store) as _,
            ledger: Arc::clone(&store) as _,
            upkeep: Arc::clone(&store) as _,
            views: store,
            doorbell,
        })
    }
}

/// The migrations, embedded, in order.
fn migrator() -> Migrator {
    const FILES: &[(i64, &str, &str)] =
        &[(1, "main job", include_str!("../../../../migrations/sqlite/0001_main_job.sql"))];
    let migrations = FILES
        .iter()
        .map(|(version, name, text)| {
            let text: &'static str = text;
            Migration::new(*version, Cow::Borrowed(name), MigrationType::Simple, text.into_sql_str(), false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}
