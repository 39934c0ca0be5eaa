//! The engine's session over SQLite.

use crate::StoreError;
use crate::engine::rows::Fields;
use crate::engine::session::{Arg, Args, CommitError, Reader, Session, Write};
use crate::sql::Text;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{Row, Sqlite};

/// A database error as ours.
pub(super) fn failed(action: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| StoreError::Database { action, message: error.to_string() }
}

impl Fields for SqliteRow {
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        self.try_get(column).map_err(|e| e.to_string())
    }

    fn text(&self, column: &str) -> Result<Option<&str>, String> {
        self.try_get(column).map_err(|e| e.to_string())
    }
}

fn bound(text: &Text, args: Args<'_>) -> Result<Query<'static, Sqlite, SqliteArguments>, StoreError> {
    let mut query = sqlx::query(text.sqlite);
    let values = match args {
        Args::Values(values) => values,
        Args::Rows(columns, values) => {
            query = query.bind(columns.to_json()?);
            values
        }
    };
    for value in values {
        query = match value {
            Arg::Int(value) => query.bind(*value),
            Arg::Text(value) => query.bind(value.map(str::to_owned)),
            Arg::Made(value) => query.bind(value.clone()),
        };
    }
    Ok(query)
}

/// The one connection that writes.
pub(super) struct Writing(pub SqliteConnection);

impl Session for Writing {
    type Row = SqliteRow;

    async fn begin(&mut self) -> Result<(), StoreError> {
        let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut self.0).await;
        begun.map(|_| ()).map_err(failed("begin a transaction"))
    }

    async fn commit(&mut self) -> Result<(), CommitError> {
        let committed = sqlx::query("COMMIT").execute(&mut self.0).await;
        if let Err(error) = committed {
            self.rollback().await;
            return Err(CommitError::Refused(failed("commit")(error)));
        }
        Ok(())
    }

    async fn rollback(&mut self) {
        // Best effort: after some errors SQLite has rolled back already.
        let _ = sqlx::query("ROLLBACK").execute(&mut self.0).await;
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
    ) -> Result<Vec<SqliteRow>, StoreError> {
        bound(text, args)?.fetch_all(&mut self.0).await.map_err(failed(action))
    }

    async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        let done = bound(text, args)?.execute(&mut self.0).await.map_err(failed(action))?;
        Ok(done.rows_affected())
    }

    async fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        for write in writes {
            let query = sqlx::query(write.text.sqlite).bind(write.rows.to_json()?);
            let done = query.execute(&mut self.0).await.map_err(failed(write.action))?;
            write.check(done.rows_affected())?;
        }
        Ok(())
    }
}

/// The connections that read.
pub(super) struct Readers(pub SqlitePool);

impl Reader for Readers {
    type Row = SqliteRow;

    async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        bound(text, args)?.fetch_all(&self.0).await.map_err(failed(action))
    }
}
