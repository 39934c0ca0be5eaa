//! The engine's session over PostgreSQL: one array per column, commits that leave a name, reconnecting.

use super::PostgresOptions;
use super::connection::{Address, failed};
use super::joined::joined;
use crate::StoreError;
use crate::engine::columns::{Column, Columns};
use crate::engine::rows::Fields;
use crate::engine::session::{Arg, Args, CommitError, Reader, Session, Write};
use crate::sql::Text;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection, Postgres, Row};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::Ids;

/// Begins a transaction and leaves its name.
const BEGIN: &str = include_str!("../../sql/postgres_alone/begin.sql");
/// The name of the last transaction that was committed.
const OUTCOME: &str = include_str!("../../sql/postgres_alone/outcome.sql");
/// How long a writer waits for one answer. A database whose machine is gone never says so.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a read waits for a connection.
const ACQUIRE: Duration = Duration::from_secs(10);

impl Fields for PgRow {
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        self.try_get(column).map_err(|e| e.to_string())
    }

    fn text(&self, column: &str) -> Result<Option<&str>, String> {
        self.try_get(column).map_err(|e| e.to_string())
    }
}

type Bound = Query<'static, Postgres, PgArguments>;

fn with_columns(mut query: Bound, columns: Vec<Column>) -> Bound {
    for column in columns {
        query = match column {
            Column::Ints(values) => query.bind(values),
            Column::Texts(values) => query.bind(values),
        };
    }
    query
}

fn bound(text: &Text, args: Args<'_>, persistent: bool) -> Bound {
    let mut query = sqlx::query(text.postgres).persistent(persistent);
    let values = match args {
        Args::Values(values) => values,
        Args::Rows(columns, values) => {
            query = with_columns(query, columns.columns);
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
    query
}

/// Makes queues known.
pub(super) async fn remember_queues(
    conn: &mut PgConnection,
    text: &Text,
    queues: &[String],
) -> Result<(), StoreError> {
    let named = queues.iter().filter(|name| *name != "*").map(|name| (name.clone(), 0)).collect();
    let query = bound(text, Args::Rows(Columns::of::<(String, i64)>(named), &[]), false);
    // Through a pooler a statement and its execution stay together only within a transaction.
    let remembered = async {
        let mut tx = conn.begin().await?;
        query.execute(&mut *tx).await?;
        tx.commit().await
    };
    remembered.await.map_err(failed("remember queues"))
}

/// Waits for an answer, but not for ever.
async fn within<T>(asking: impl Future<Output = Result<T, sqlx::Error>> + Send) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(ANSWER, asking).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the database did not answer within {ANSWER:?}"),
        ))),
    }
}

/// A connection that writes. It is made when it is needed, and made anew when it broke.
pub(super) struct Writing {
    address: Address,
    persistent: bool,
    conn: Option<PgConnection>,
    ids: Arc<dyn Ids>,
    /// This writer's row in `writers`.
    name: String,
    /// The name of the transaction that was begun last.
    commit: String,
}

impl Writing {
    pub(super) fn new(
        address: Address,
        options: &PostgresOptions,
        ids: &Arc<dyn Ids>,
        conn: Option<PgConnection>,
    ) -> Self {
        let (ids, name) = (Arc::clone(ids), ids.next());
        Self { address, persistent: !options.transaction_pooler, conn, ids, name, commit: String::new() }
    }

    async fn connected(&mut self) -> Result<&mut PgConnection, StoreError> {
        let conn = match self.conn.take() {
            Some(conn) => conn,
            None => self.address.connect().await?,
        };
        Ok(self.conn.insert(conn))
    }

    /// Gives the connection up when nothing came back on it: what comes later belongs to nobody.
    fn heard<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if matches!(answer, Err(sqlx::Error::Io(_))) {
            self.conn = None;
        }
        answer
    }

    fn open(&mut self) -> Result<&mut PgConnection, StoreError> {
        self.conn.as_mut().ok_or(StoreError::Unavailable {
            action: "go on",
            message: "the connection is broken".to_owned(),
        })
    }
}

impl Session for Writing {
    type Row = PgRow;

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.commit = self.ids.next();
        // Ids are UUIDs: nothing in them could end the literal that they stand in.
        let text = BEGIN.replace(":writer", &self.name).replace(":commit", &self.commit);
        let begun = within(sqlx::raw_sql(AssertSqlSafe(text)).execute(self.connected().await?)).await;
        if begun.is_err() {
            self.conn = None;
        }
        begun.map(|_| ()).map_err(failed("begin a transaction"))
    }

    async fn commit(&mut self) -> Result<(), CommitError> {
        let conn = self.open().map_err(CommitError::Refused)?;
        let Err(error) = within(sqlx::raw_sql("COMMIT").execute(conn)).await else { return Ok(()) };
        self.conn = None;
        let refused = error.as_database_error().is_some_and(|e| {
            // A server that shuts down may have committed before it said so.
            e.code().is_none_or(|code| !code.starts_with("57P"))
        });
        let error = failed("commit")(error);
        Err(if refused { CommitError::Refused(error) } else { CommitError::Unknown(error) })
    }

    async fn rollback(&mut self) {
        let Some(mut conn) = self.conn.take() else { return };
        // A connection that cannot roll back is given up: the database does it then.
        if within(sqlx::raw_sql("ROLLBACK").execute(&mut conn)).await.is_ok() {
            self.conn = Some(conn);
        }
    }

    async fn outcome(&mut self) -> Result<bool, StoreError> {
        let query = sqlx::query(OUTCOME).persistent(false).bind(self.name.clone());
        let conn = self.connected().await?;
        // In a transaction of its own: through a pooler the statement and its execution must not part.
        let asked = within(async {
            let mut tx = conn.begin().await?;
            let row = query.fetch_optional(&mut *tx).await?;
            tx.commit().await?;
            row.map(|row| row.try_get::<String, _>("last_commit")).transpose()
        })
        .await;
        if asked.is_err() {
            self.conn = None;
        }
        Ok(asked.map_err(failed("look up a commit"))?.is_some_and(|last| last == self.commit))
    }

    async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let query = bound(text, args, self.persistent);
        let rows = within(query.fetch_all(self.open()?)).await;
        self.heard(rows).map_err(failed(action))
    }

    async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        let query = bound(text, args, self.persistent);
        let done = within(query.execute(self.open()?)).await;
        Ok(self.heard(done).map_err(failed(action))?.rows_affected())
    }

    async fn write(&mut self, mut writes: Vec<Write>) -> Result<(), StoreError> {
        let texts = writes.iter().map(|write| (write.text.postgres, write.rows.columns.len()));
        // Joined from the files' own texts and nothing else.
        let mut query = sqlx::query(AssertSqlSafe(joined(texts))).persistent(self.persistent);
        for write in &mut writes {
            query = with_columns(query, std::mem::take(&mut write.rows.columns));
        }
        let action = writes.first().map_or("write", |write| write.action);
        let row = within(query.fetch_one(self.open()?)).await;
        let row = self.heard(row).map_err(failed(action))?;
        for (at, write) in writes.iter().enumerate() {
            let written: i64 = row.try_get(at).map_err(failed(write.action))?;
            write.check(written.unsigned_abs())?;
        }
        Ok(())
    }
}

/// The connections that read.
#[derive(Clone)]
pub(super) struct Readers {
    pool: PgPool,
    pooler: bool,
}

impl Readers {
    pub(super) fn new(address: &Address, options: &PostgresOptions) -> Self {
        // The listener keeps a connection of the pool to itself, and must leave one.
        let pool = PgPoolOptions::new()
            .max_connections(options.connections.max(1 + u32::from(options.listens())))
            .acquire_timeout(ACQUIRE)
            .connect_lazy_with(address.options());
        Self { pool, pooler: options.transaction_pooler }
    }

    /// The pool, for statements that are no part of the engine.
    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Reader for Readers {
    type Row = PgRow;

    async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<PgRow>, StoreError> {
        let query = bound(text, args, !self.pooler);
        if !self.pooler {
            return query.fetch_all(&self.pool).await.map_err(failed(action));
        }
        // Through a pooler a statement and its execution stay together only within a transaction.
        let mut tx = self.pool.begin().await.map_err(failed(action))?;
        let rows = query.fetch_all(&mut *tx).await.map_err(failed(action))?;
        tx.commit().await.map_err(failed(action))?;
        Ok(rows)
    }
}
