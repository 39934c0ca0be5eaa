//! The embedded store: one SQLite file, WAL, `synchronous=FULL`, one writer, readers apart.

mod session;

pub(crate) use session::{Readers, Writing};

use crate::cipher::{self, DataKey, Keyring};
use crate::engine;
use crate::engine::session::{Connection, Reader, Readers as AnyReaders, Session};
use crate::limits::LocalLimits;
use crate::migrations::{self, SQLITE};
use crate::{EncryptionKeys, Finding, Store, StoreError, sql};
use session::failed;
use sqlx::migrate::Migrate;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection as _};
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
    /// When the file cannot be opened, is damaged, is encrypted, or was written by a newer version.
    pub async fn open(path: &Path, ids: Arc<dyn Ids>) -> Result<Store, StoreError> {
        Self::open_sealed(path, None, ids).await
    }

    /// The same with what is stored encrypted by a key, if there is one.
    ///
    /// # Errors
    /// As [`SqliteStore::open`]; and [`StoreError::Misconfigured`] when the file was encrypted with a key that is not there.
    pub async fn open_sealed(
        path: &Path,
        keys: Option<&EncryptionKeys>,
        ids: Arc<dyn Ids>,
    ) -> Result<Store, StoreError> {
        let options = options(path);
        let mut conn = options.connect().await.map_err(failed("open the database file"))?;
        migrate(&mut conn).await?;
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
        let readers = AnyReaders::Sqlite(Readers(readers));
        let ring = Keyring::read(&readers, keys).await?;
        let writing = vec![Session::new(Connection::Sqlite(Writing(conn)), ring.clone())];
        Ok(engine::start(Reader::new(readers, ring), writing, None, &ids, limits))
    }

    /// Whether these keys open what is stored in the file, without changing it.
    pub async fn check(path: &Path, keys: Option<&EncryptionKeys>) -> Finding {
        match data_keys(path).await {
            Ok(rows) => cipher::finding(keys, &rows),
            Err(error) => Finding::bad(
                format!("the database file {} cannot be read: {error}", path.display()),
                "restore it from a backup, or name another data directory",
            ),
        }
    }
}

/// Brings the schema of the file up to date.
async fn migrate(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let migrator = migrations::migrator(SQLITE);
    let refused = match migrator.run(&mut *conn).await {
        Ok(()) => return Ok(()),
        Err(error) => migrations::refused(error),
    };
    // Without a list there is nothing to add to the refusal.
    let applied = conn.list_applied_migrations(&migrator.table_name).await.unwrap_or_default();
    migrations::known(&applied, SQLITE).and(Err(refused))
}

/// Returns the options of every connection of the store. A commit returns after it was flushed to the disk.
fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY)
        .foreign_keys(false)
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", "4000")
        .disable_statement_logging()
}

/// Reads the data keys of a file. A file without a schema has none.
async fn data_keys(path: &Path) -> Result<Vec<DataKey>, StoreError> {
    let action = "read data keys";
    let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(BUSY);
    let mut conn = options.connect().await.map_err(failed("open the database file"))?;
    let rows = sqlx::raw_sql(sql::SELECT_DATA_KEYS.sqlite).fetch_all(&mut conn).await;
    let _ = conn.close().await;
    match rows {
        Err(error) if error.to_string().contains("no such table") => Ok(Vec::new()),
        rows => rows.map_err(failed(action))?.into_iter().map(|row| DataKey::decode(&row.into())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::Row as _;

    #[tokio::test]
    async fn every_commit_is_flushed_to_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut conn = options(&folder.path().join("t.db")).connect().await.unwrap();
        let journal = sqlx::query("PRAGMA journal_mode").fetch_one(&mut conn).await.unwrap();
        assert_eq!(journal.get::<String, _>(0), "wal");
        // 2 is FULL: the log is synced after each transaction. 1 (NORMAL) syncs it at checkpoints alone.
        let synchronous = sqlx::query("PRAGMA synchronous").fetch_one(&mut conn).await.unwrap();
        assert_eq!(synchronous.get::<i64, _>(0), 2);
    }
}
