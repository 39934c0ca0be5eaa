//! The engine's session over SQLite.

use crate::StoreError;
use crate::engine::session::{Arg, Args, CommitError, Row, Write};
use crate::sql::Text;
use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqlitePool};

/// A database error as ours.
pub(super) fn failed(action: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| StoreError::Database { action, message: error.to_string() }
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
        };
    }
    Ok(query)
}

/// The one connection that writes.
pub(crate) struct Writing(pub(super) SqliteConnection);

impl Writing {
    pub(crate) async fn begin(&mut self) -> Result<(), StoreError> {
        let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut self.0).await;
        begun.map(|_| ()).map_err(failed("begin a transaction"))
    }

    pub(crate) async fn commit(&mut self) -> Result<(), CommitError> {
        let committed = sqlx::query("COMMIT").execute(&mut self.0).await;
        if let Err(error) = committed {
            self.rollback().await;
            return Err(CommitError::Refused(failed("commit")(error)));
        }
        Ok(())
    }

    pub(crate) async fn rollback(&mut self) {
        // Best effort: after some errors SQLite has rolled back already.
        let _ = sqlx::query("ROLLBACK").execute(&mut self.0).await;
    }

    pub(crate) async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = bound(text, args)?.fetch_all(&mut self.0).await.map_err(failed(action))?;
        Ok(rows.into_iter().map(Row::from).collect())
    }

    pub(crate) async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        let done = bound(text, args)?.execute(&mut self.0).await.map_err(failed(action))?;
        Ok(done.rows_affected())
    }

    pub(crate) async fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        for write in writes {
            let query = sqlx::query(write.text.sqlite).bind(write.rows.to_json()?);
            let done = query.execute(&mut self.0).await.map_err(failed(write.action))?;
            write.check(done.rows_affected())?;
        }
        Ok(())
    }
}

/// The connections that read.
#[derive(Clone)]
pub(crate) struct Readers(pub(super) SqlitePool);

impl Readers {
    pub(crate) async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = bound(text, args)?.fetch_all(&self.0).await.map_err(failed(action))?;
        Ok(rows.into_iter().map(Row::from).collect())
    }
}
