//! The embedded store: one SQLite file, WAL, `synchronous=FULL`, one writer, readers apart.

mod session;

use crate::engine;
use crate::limits::LocalLimits;
use crate::migrations::{self, SQLITE};
use crate::{Store, StoreError};
use session::{Readers, Writing, failed};
use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::Ids;

/// How long a connection waits for another process's write before it gives up.
const BUSY: Duration = Duration::from_secs(10);

/// The embedded store.
#[derive(Clone, Copy, Debug)]
pub struct SqliteStore;

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
        migrations::migrator(SQLITE).run(&mut conn).await.map_err(migrations::refused)?;
        let readers = SqlitePoolOptions::new()
            .max_connections(4)
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options.read_only(true).create_if_missing(false))
            .await
            .map_err(failed("open the database file for reading"))?;
        // One process uses the file, so its memory is all that a limit needs.
        let limits = Arc::new(LocalLimits::one_of(1));
        Ok(engine::start(Readers(readers), vec![Writing(conn)], &ids, limits))
    }
}
