//! The embedded store: one SQLite file, WAL, one writer, readers apart. Commits wait for the disk (`synchronous=FULL`), except
//! for those of claims of agents alone.

mod connection;
mod log;
mod migrate;
mod session;

pub(crate) use connection::Cells;
pub(crate) use session::{Readers, Writing};

use crate::cipher::{self, DataKey, Keyring};
use crate::engine;
use crate::engine::rows::get;
use crate::engine::session::{Args, Reader, Readers as AnyReaders, Row, Session};
use crate::limits::LocalLimits;
use crate::{DamagedValue, EncryptionKeys, Finding, Inspected, Store, StoreError, sql};
use async_recursion::async_recursion as boxed;
use connection::{BoundValues, SqliteConnection, failed};
use std::path::Path;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use turnstone_domain::Ids;

/// The embedded store.
#[derive(Clone, Copy, Debug)]
pub struct SqliteStore;

impl SqliteStore {
    /// Opens the file (and creates it if need be), migrates it, and starts the writer on the current runtime.
    ///
    /// # Errors
    /// When the file cannot be opened, is damaged, is encrypted, was written by a newer version, or was copied without its
    /// log.
    #[boxed]
    pub async fn open(path: &Path, ids: Arc<dyn Ids>) -> Result<Store, StoreError> {
        Self::open_sealed(path, None, ids).await
    }

    /// The same with what is stored encrypted by a key, if there is one.
    ///
    /// # Errors
    /// As [`SqliteStore::open`]; and [`StoreError::Misconfigured`] when the file was encrypted with a key that is not there.
    #[boxed]
    pub async fn open_sealed(
        path: &Path,
        keys: Option<&EncryptionKeys>,
        ids: Arc<dyn Ids>,
    ) -> Result<Store, StoreError> {
        let file = path.to_owned();
        let conn = blocking(move || {
            log::check(&file)?;
            let mut conn = SqliteConnection::to_write(&file).map_err(failed("open the database file"))?;
            migrate::migrate(conn.inner())?;
            conn.mark();
            Ok(conn)
        });
        let conn = conn.await?;
        // One process uses the file, so its memory is all that a limit needs.
        let limits = Arc::new(LocalLimits::one_of(1));
        let readers = AnyReaders::Sqlite(Readers::new(path.to_owned()));
        let ring = Keyring::read(&readers, keys).await?;
        let session = Session::new(Writing(conn), ring.clone(), Arc::clone(&ids));
        let writing = vec![session.after(newest_commit(&readers).await?)];
        engine::start(Reader::new(readers, ring), writing, None, &ids, limits)
    }

    /// Reads everything that is stored in the file, and reports what cannot be read as soon as it is found. Nothing is
    /// changed, and another process may use the file.
    ///
    /// # Errors
    /// As [`SqliteStore::open_sealed`]; a file of an older version has to be migrated first.
    #[boxed]
    pub async fn inspect(
        path: &Path,
        keys: Option<&EncryptionKeys>,
        report: &mut (dyn FnMut(DamagedValue) + Send),
    ) -> Result<Inspected, StoreError> {
        let file = path.to_owned();
        blocking(move || Ok(log::check(&file)?)).await?;
        let readers = AnyReaders::Sqlite(Readers::new(path.to_owned()));
        let ring = Keyring::read(&readers, keys).await?;
        engine::inspect::inspect(&Reader::new(readers, ring), report).await
    }

    /// Checks that these keys open what is stored in the file, without changing it.
    #[boxed]
    pub async fn check(path: &Path, keys: Option<&EncryptionKeys>) -> Finding {
        let file = path.to_owned();
        let checked = blocking(move || Ok(log::check(&file).map(|()| data_keys(&file))));
        let rows = match checked.await {
            Ok(Err(missing)) => return missing.into(),
            Ok(Ok(rows)) => rows,
            Err(error) => Err(error),
        };
        match rows {
            Ok(rows) => cipher::finding(keys, &rows),
            Err(error) => Finding::bad(
                format!("the database file {} cannot be read: {error}", path.display()),
                "restore it from a backup, or name another data directory",
            ),
        }
    }
}

/// Returns the number of the newest commit; 0 before the first.
async fn newest_commit(readers: &AnyReaders) -> Result<i64, StoreError> {
    let rows = readers.read("look for the newest event", &sql::SELECT_FEED_END, Args::Values(&[])).await?;
    Ok(rows.first().map(|row| get(row, "number")).transpose()?.unwrap_or_default())
}

/// Runs what blocks on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(work).await.map_err(|_| StoreError::Closed)?
}

/// Reads the data keys of a file. A file without a schema has none.
fn data_keys(path: &Path) -> Result<Vec<DataKey>, StoreError> {
    let mut conn = SqliteConnection::to_read(path).map_err(failed("open the database file"))?;
    match conn.rows(&BoundValues::new(&sql::SELECT_DATA_KEYS, Args::Values(&[]))?) {
        Err(error) if error.to_string().contains("no such table") => Ok(Vec::new()),
        rows => {
            let rows = rows.map_err(failed("read data keys"))?;
            rows.into_iter().map(|row| DataKey::decode(&Row::from(row))).collect()
        }
    }
}

/// Returns a connection to an empty database in memory that has the whole schema.
#[cfg(test)]
pub(crate) fn migrated_in_memory() -> rusqlite::Connection {
    let mut conn = rusqlite::Connection::open_in_memory().unwrap();
    migrate::migrate(&mut conn).unwrap();
    conn
}

/// Returns the connection that writes to a new file.
#[cfg(test)]
pub(crate) fn migrated(path: &Path) -> Writing {
    let mut conn = SqliteConnection::to_write(path).unwrap();
    migrate::migrate(conn.inner()).unwrap();
    Writing(conn)
}

#[cfg(test)]
mod tests {
    use super::connection::SqliteConnection;

    #[test]
    fn a_new_connection_waits_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut conn = SqliteConnection::to_write(&folder.path().join("t.db")).unwrap();
        let journal: String =
            conn.inner().pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(journal, "wal");
        // 2 is FULL: the log is synced after each transaction. 1 (NORMAL) syncs it at checkpoints alone.
        let synchronous: i64 =
            conn.inner().pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!(synchronous, 2);
    }
}
