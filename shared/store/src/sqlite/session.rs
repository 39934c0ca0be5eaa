//! The engine's session over SQLite.

use super::connection::{BoundValues, Cells, SqliteConnection, failed};
use crate::StoreError;
use crate::engine::session::{Args, CommitError, Connection, Durability, Row, Write};
use crate::sql::Text;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The connections that read at once.
const READERS: usize = 4;

/// The one connection that writes. Its calls block: the writer has a thread of its own, and nothing waits on it for another
/// thread between `BEGIN` and `COMMIT`.
pub(crate) struct Writing(pub(super) SqliteConnection);

#[async_trait]
impl Connection for Writing {
    fn is_embedded(&self) -> bool {
        true
    }

    async fn begin(&mut self, durability: Durability) -> Result<(), StoreError> {
        let begun = self.0.set_durability(durability).and_then(|()| self.0.begin());
        begun.map_err(failed("begin a transaction"))
    }

    async fn commit(&mut self, events: Option<i64>) -> Result<(), CommitError> {
        if let Some(id) = events
            && let Err(error) = self.write(vec![Write::of_commit(id).map_err(CommitError::Refused)?]).await
        {
            self.rollback().await;
            return Err(CommitError::Failed(error));
        }
        if let Err(error) = self.0.commit() {
            self.rollback().await;
            return Err(CommitError::Refused(failed("commit")(error)));
        }
        Ok(())
    }

    async fn rollback(&mut self) {
        // Best effort: after some errors SQLite has rolled back already.
        let _ = self.0.control("ROLLBACK");
    }

    async fn outcome(&mut self) -> Result<bool, StoreError> {
        // The database is in this process: a commit that fails is refused, never unknown.
        Ok(false)
    }

    async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.0.rows(&BoundValues::new(text, args)?).map_err(failed(action))?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    async fn look(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.rows(action, text, args).await
    }

    async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        self.0.execute(&BoundValues::new(text, args)?).map_err(failed(action))
    }

    async fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        for write in writes {
            let written = match write.text.sqlite_row.is_empty() {
                false => self.0.write(&write).map_err(failed(write.action))?,
                true => {
                    let rows = BoundValues::of_rows(write.text, &write.rows)?;
                    self.0.execute(&rows).map_err(failed(write.action))?
                }
            };
            write.check(written)?;
        }
        Ok(())
    }

    async fn rows_alone(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, CommitError> {
        self.rows(action, text, args).await.map_err(CommitError::Failed)
    }
}

impl Drop for Writing {
    /// Copies the log into the file, which is then complete without it: a reader may close the file last, and leave the
    /// log.
    fn drop(&mut self) {
        let _ = self.0.checkpoint();
    }
}

/// The connections that read, each on a thread for blocking work. They are opened when they are needed.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Pool>);

struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<SqliteConnection>>,
    places: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(Arc::new(Pool { path, idle: Mutex::default(), places: Arc::new(Semaphore::new(READERS)) }))
    }

    pub(crate) async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let bound = BoundValues::new(text, args)?;
        let place = Arc::clone(&self.0.places).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let pool = Arc::clone(&self.0);
        let read = spawn_blocking(move || {
            // Kept until the connection is back, although the caller may have gone away.
            let _place = place;
            pool.read(&bound)
        });
        let rows = read.await.map_err(|_| StoreError::Closed)?.map_err(failed(action))?;
        Ok(rows.into_iter().map(Row::from).collect())
    }
}

impl Pool {
    fn read(&self, bound: &BoundValues) -> rusqlite::Result<Vec<Cells>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut conn = idle.map_or_else(|| SqliteConnection::to_read(&self.path), Ok)?;
        let rows = conn.rows(bound);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        rows
    }
}
