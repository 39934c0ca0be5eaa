//! The engine's session over PostgreSQL: one array per column, commits that leave a name, reconnecting.
//!
//! `BEGIN` is sent with the first statement that needs a transaction. A transaction that turns out to be a single write
//! is one statement, which commits itself and fails itself when a count is wrong: one round trip.

use super::PostgresOptions;
use super::connection::{Address, Live, answer_within, failed};
use super::joined::{Texts, alone, counted, joined};
use super::packed::{self, Parameter};
use super::sqlstate;
use crate::StoreError;
use crate::engine::columns::{Column, Columns};
use crate::engine::rows::{QueueName, Stored};
use crate::engine::session::{Arg, Args, CommitError, Connection, Durability, Row, Write};
use crate::sql::{self, Text};
use async_trait::async_trait;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection as _, Postgres, Row as _};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::{Ids, Timestamp};

/// How long a connection that writes is taken for alive after it was used.
const TRUSTED: Duration = Duration::from_secs(15);

pub(super) type BoundQuery = Query<'static, Postgres, PgArguments>;

fn with_columns(mut query: BoundQuery, columns: Vec<Column>) -> BoundQuery {
    for column in columns {
        query = match column {
            Column::Ints(values) => query.bind(values),
            Column::Texts(values) => query.bind(values),
        };
    }
    query
}

/// Binds the rows of a statement that writes.
fn with_rows(query: BoundQuery, rows: &mut Columns) -> BoundQuery {
    packed::parameters(rows).into_iter().fold(query, |query, parameter| match parameter {
        Parameter::Numbers(all) => query.bind(all),
        Parameter::Same(texts) => query.bind(texts),
        Parameter::Texts(texts) => query.bind(texts),
        Parameter::Column(column) => with_columns(query, vec![column]),
    })
}

pub(super) fn bound(text: &Text, args: Args<'_>, persistent: bool) -> BoundQuery {
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
        };
    }
    query
}

/// Makes queues known.
pub(super) async fn remember_queues(conn: &mut PgConnection, queues: &[String]) -> Result<(), StoreError> {
    let named = queues.iter().filter(|name| *name != "*");
    let named = named.map(|name| QueueName { name: name.clone(), created_at: Timestamp(0) }).collect();
    let text = &QueueName::table().inserts.missing;
    let query = bound(text, Args::Rows(Columns::of(named, text)?, &[]), false);
    // Through a pooler a statement and its execution stay together only within a transaction.
    let remembered = async {
        let mut tx = conn.begin().await?;
        query.execute(&mut *tx).await?;
        tx.commit().await
    };
    remembered.await.map_err(failed("remember queues"))
}

/// The rows of an answer.
fn of(rows: Result<Vec<PgRow>, sqlx::Error>, action: &'static str) -> Result<Vec<Row>, StoreError> {
    Ok(rows.map_err(failed(action))?.into_iter().map(Row::from).collect())
}

/// A connection that writes. It is made when it is needed, and made anew when it broke.
pub(crate) struct Writing {
    address: Address,
    persistent: bool,
    conn: Option<Live>,
    patience: Patience,
    ids: Arc<dyn Ids>,
    /// This writer's row in `writers`.
    name: String,
    /// The name of the transaction that was begun last.
    commit: String,
    /// True once that row was made.
    named: bool,
    /// True once `BEGIN` was sent.
    begun: bool,
    /// Writes that wait for the statement, or the commit, that follows them.
    waiting: Vec<Write>,
    /// Statements of a transaction.
    joined: Texts,
    /// Statements that are transactions.
    alone: Texts,
}

impl Writing {
    pub(super) fn new(
        address: Address,
        options: &PostgresOptions,
        ids: &Arc<dyn Ids>,
        conn: Option<PgConnection>,
    ) -> Self {
        let (ids, name) = (Arc::clone(ids), ids.next());
        Self {
            address,
            persistent: !options.transaction_pooler,
            conn: conn.map(Live::new),
            patience: Patience::of(options),
            ids,
            name,
            commit: String::new(),
            named: false,
            begun: false,
            waiting: Vec::new(),
            joined: Texts::default(),
            alone: Texts::default(),
        }
    }

    async fn connected(&mut self) -> Result<&mut PgConnection, StoreError> {
        let trusted = match self.conn.take() {
            Some(live) => self.address.trusted(live, TRUSTED).await,
            None => None,
        };
        let live = match trusted {
            Some(live) => live,
            None => self.address.connect_in_service(true).await?,
        };
        Ok(&mut self.conn.insert(live).conn)
    }

    /// Takes in an answer. Closes the connection when none arrived, because a late answer would be taken for that of the next
    /// statement, and when its session cannot serve.
    fn heard<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        match &answer {
            Ok(_) => {
                self.patience.answered();
                self.conn.iter_mut().for_each(Live::answered);
            }
            Err(error) => {
                self.patience.failed(error);
                let born = self.conn.as_ref().map_or_else(Instant::now, |live| live.born);
                if !self.address.judge(error, born).keeps_session() {
                    self.conn = None;
                }
            }
        }
        answer
    }

    fn open(&mut self) -> Result<&mut PgConnection, StoreError> {
        let broken = || StoreError::Unavailable {
            action: "continue a transaction",
            message: "the connection is broken".to_owned(),
        };
        self.conn.as_mut().map(|live| &mut live.conn).ok_or_else(broken)
    }

    /// Begins the transaction in the database, unless that has happened, and runs the writes that wait.
    async fn go_on(&mut self) -> Result<(), StoreError> {
        if !self.begun {
            // Committed before, so that a look-up finds the row and waits for this transaction.
            self.be_named().await?;
            // Ids are UUIDs: nothing in them could end the literal that contains them.
            let mark = sql::INSERT_WRITER_AT_BEGIN
                .postgres
                .replace(":writer", &self.name)
                .replace(":commit", &self.commit);
            let settings =
                if self.persistent { String::new() } else { self.address.settings_of_transaction() };
            let text = format!("BEGIN; {settings}{mark}");
            let longest = self.patience.longest();
            let begin = sqlx::raw_sql(AssertSqlSafe(text)).execute(self.connected().await?);
            let begun = answer_within(longest, begin).await;
            let begun = self.heard(begun);
            if begun.is_err() {
                self.conn = None;
            }
            begun.map_err(failed("begin a transaction"))?;
            self.begun = true;
        }
        let writes = std::mem::take(&mut self.waiting);
        if writes.is_empty() { Ok(()) } else { self.run(writes).await }
    }

    /// Runs writes as one statement of the transaction.
    async fn run(&mut self, mut writes: Vec<Write>) -> Result<(), StoreError> {
        // Joined from the files' own texts and nothing else.
        let text = self.joined.of(&writes, || joined(&writes));
        let mut query = sqlx::query(AssertSqlSafe(text)).persistent(self.persistent);
        for write in &mut writes {
            query = with_rows(query, &mut write.rows);
        }
        let action = writes.first().map_or("write", |write| write.action);
        let longest = self.patience.longest();
        let row = answer_within(longest, query.fetch_one(self.open()?)).await;
        let row = self.heard(row).map_err(failed(action))?;
        for (at, write) in writes.iter().enumerate() {
            let written: i64 = row.try_get(at).map_err(failed(write.action))?;
            write.check(written.unsigned_abs())?;
        }
        Ok(())
    }

    /// Runs writes as a transaction of one statement.
    async fn run_alone(&mut self, mut writes: Vec<Write>) -> Result<(), CommitError> {
        let text = self.alone.of(&writes, || alone(&writes, sql::UPDATE_WRITER.postgres));
        let mut query = sqlx::query(AssertSqlSafe(text));
        for write in &mut writes {
            query = with_rows(query, &mut write.rows);
        }
        for write in writes.iter().filter(|write| write.each) {
            query = query.bind(write.rows.rows as i64);
        }
        self.be_named().await.map_err(CommitError::Refused)?;
        query = query.bind(self.name.clone()).bind(self.commit.clone());
        let longest = self.patience.longest();
        let conn = self.open().map_err(CommitError::Refused)?;
        let done = answer_within(longest, query.execute(conn)).await;
        let Err(error) = self.heard(done) else { return Ok(()) };
        let action = writes.first().map_or("write", |write| write.action);
        if let Some((at, written)) = error.as_database_error().and_then(|e| counted(e.message())) {
            let Some(write) = writes.get(at) else { return Err(self.unnamed()) };
            let checked = write.check(written);
            return Err(CommitError::Failed(checked.err().unwrap_or_else(|| failed(action)(error))));
        }
        Err(match self.ended(&error) {
            Ended::Unknown => CommitError::Unknown(failed(action)(error)),
            Ended::RolledBack => CommitError::Failed(failed(action)(error)),
        })
    }

    /// Connects, and makes the row for the marks of this writer, unless it is there.
    async fn be_named(&mut self) -> Result<(), StoreError> {
        if self.named {
            return self.connected().await.map(|_| ());
        }
        let query = sqlx::query(sql::INSERT_WRITER.postgres).persistent(self.persistent);
        let query = query.bind(self.name.clone()).bind(self.ids.next());
        let persistent = self.persistent;
        let longest = self.patience.longest();
        let conn = self.connected().await?;
        let made = answer_within(longest, async {
            if persistent {
                return query.execute(conn).await.map(|_| ());
            }
            // Through a pooler a statement and its execution stay together only within a transaction.
            let mut tx = conn.begin().await?;
            query.execute(&mut *tx).await?;
            tx.commit().await
        })
        .await;
        self.heard(made).map_err(failed("make a row for commits"))?;
        self.named = true;
        Ok(())
    }

    /// The error of a statement that found no row for its mark: it was deleted after a long pause, and is made anew.
    fn unnamed(&mut self) -> CommitError {
        self.named = false;
        let message = "its writer was idle for long; it is tried again".to_owned();
        CommitError::Refused(StoreError::Unavailable { action: "leave a mark", message })
    }

    /// How a transaction ended whose last statement met this error; gives the connection up unless that is known.
    fn ended(&mut self, error: &sqlx::Error) -> Ended {
        if sqlstate::rolled_back(error) {
            return Ended::RolledBack;
        }
        self.conn = None;
        Ended::Unknown
    }
}

/// How long a writer waits for one answer: an answer that is later than this is taken for lost, and looked up.
struct Patience {
    /// For work under a lease: early enough to try again while the lease lasts.
    urgent: Duration,
    /// For all other work: longer than the database lets a statement run.
    longest: Duration,
    hurried: bool,
    /// Answers that were late one after the other. Each doubles the time of the next, because a slow database must not be asked
    /// the same without end.
    late: u32,
}

impl Patience {
    fn of(options: &PostgresOptions) -> Self {
        Self { urgent: options.answer, longest: options.longest_answer(), hurried: true, late: 0 }
    }

    fn longest(&self) -> Duration {
        match self.hurried {
            true => self.urgent.saturating_mul(1 << self.late).min(self.longest),
            false => self.longest,
        }
    }

    fn answered(&mut self) {
        self.late = 0;
    }

    fn failed(&mut self, error: &sqlx::Error) {
        match error {
            sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.late = (self.late + 1).min(8);
            }
            _ => {}
        }
    }
}

/// How a transaction ended that met an error.
enum Ended {
    RolledBack,
    Unknown,
}

#[async_trait]
impl Connection for Writing {
    fn is_embedded(&self) -> bool {
        false
    }

    fn numbers_rows(&self) -> bool {
        self.persistent
    }

    fn hurry(&mut self, hurried: bool) {
        self.patience.hurried = hurried;
    }

    async fn begin(&mut self, _: Durability) -> Result<(), StoreError> {
        self.commit = self.ids.next();
        self.begun = false;
        self.waiting.clear();
        Ok(())
    }

    async fn commit(&mut self, events: Option<i64>) -> Result<(), CommitError> {
        if !self.begun {
            let mut writes = std::mem::take(&mut self.waiting);
            if writes.is_empty() {
                return Ok(());
            }
            // Through a pooler a statement and its execution stay together only within a transaction.
            if self.persistent {
                // Last: the statements of a transaction run in their order.
                writes.extend(events.map(Write::of_commit).transpose().map_err(CommitError::Refused)?);
                return self.run_alone(writes).await;
            }
            self.waiting = writes;
        }
        if let Err(error) = self.go_on().await {
            self.rollback().await;
            return Err(CommitError::Failed(error));
        }
        self.begun = false;
        let longest = self.patience.longest();
        let conn = self.open().map_err(CommitError::Refused)?;
        // In the message of the commit: it costs no round trip, and nothing is waited for behind it.
        let insert = |id| {
            format!("{}; COMMIT", sql::INSERT_COMMIT_AT_END.postgres.replace(":id", &i64::to_string(&id)))
        };
        let end = events.map_or_else(|| "COMMIT".to_owned(), insert);
        let done = answer_within(longest, sqlx::raw_sql(AssertSqlSafe(end)).execute(conn)).await;
        let Err(error) = self.heard(done) else { return Ok(()) };
        let ended = self.ended(&error);
        self.conn = None;
        let error = failed("commit")(error);
        Err(match ended {
            Ended::RolledBack => CommitError::Refused(error),
            Ended::Unknown => CommitError::Unknown(error),
        })
    }

    async fn rollback(&mut self) {
        self.waiting.clear();
        if !std::mem::take(&mut self.begun) {
            return;
        }
        let Some(mut live) = self.conn.take() else { return };
        let longest = self.patience.longest();
        // A connection that cannot roll back is given up: the database does it then.
        if answer_within(longest, sqlx::raw_sql("ROLLBACK").execute(&mut live.conn)).await.is_ok() {
            live.answered();
            self.conn = Some(live);
        }
    }

    async fn outcome(&mut self) -> Result<bool, StoreError> {
        let query = sqlx::query(sql::LOCK_WRITER.postgres).persistent(false).bind(self.name.clone());
        let delete = sqlx::query(sql::DELETE_WRITER.postgres).persistent(false).bind(self.name.clone());
        let commit = self.commit.clone();
        let longest = self.patience.longest();
        let conn = self.connected().await?;
        // In a transaction of its own: through a pooler the statement and its execution must not part.
        let requested = answer_within(longest, async {
            let mut tx = conn.begin().await?;
            let row = query.fetch_optional(&mut *tx).await?;
            let last: Option<String> = row.map(|row| row.try_get("last_commit")).transpose()?;
            let committed = last.is_some_and(|last| last == commit);
            if !committed {
                // A statement that is still on its way must not be committed after it was taken for lost.
                delete.execute(&mut *tx).await?;
            }
            tx.commit().await?;
            Ok(committed)
        })
        .await;
        let requested = self.heard(requested);
        let Ok(committed) = requested else {
            self.conn = None;
            return requested.map_err(failed("look up a commit"));
        };
        if !committed {
            (self.name, self.named) = (self.ids.next(), false);
        }
        Ok(committed)
    }

    async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let query = bound(text, args, self.persistent);
        self.go_on().await?;
        let longest = self.patience.longest();
        let rows = answer_within(longest, query.fetch_all(self.open()?)).await;
        of(self.heard(rows), action)
    }

    async fn look(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        if self.begun || !self.persistent {
            return self.rows(action, text, args).await;
        }
        let query = bound(text, args, true);
        let longest = self.patience.longest();
        let rows = answer_within(longest, query.fetch_all(self.connected().await?)).await;
        of(self.heard(rows), action)
    }

    async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        let query = bound(text, args, self.persistent);
        self.go_on().await?;
        let longest = self.patience.longest();
        let done = answer_within(longest, query.execute(self.open()?)).await;
        Ok(self.heard(done).map_err(failed(action))?.rows_affected())
    }

    async fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        // Those that wait already are not seen by these, which may change the same rows.
        if !self.waiting.is_empty() {
            self.go_on().await?;
        }
        self.waiting = writes;
        Ok(())
    }

    async fn rows_alone(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, CommitError> {
        // Through a pooler a statement and its execution stay together only within a transaction.
        let ready = if self.persistent { self.be_named().await } else { self.go_on().await };
        ready.map_err(CommitError::Refused)?;
        let query = bound(text, args, self.persistent).bind(self.name.clone()).bind(self.commit.clone());
        let longest = self.patience.longest();
        let conn = self.open().map_err(CommitError::Refused)?;
        let rows = answer_within(longest, query.fetch_all(conn)).await;
        match self.heard(rows) {
            Ok(rows) => {
                self.commit(None).await?;
                Ok(rows.into_iter().map(Row::from).collect())
            }
            Err(error) if error.as_database_error().is_some_and(|e| counted(e.message()).is_some()) => {
                Err(self.unnamed())
            }
            Err(error) => Err(match self.ended(&error) {
                Ended::RolledBack => CommitError::Failed(failed(action)(error)),
                Ended::Unknown => CommitError::Unknown(failed(action)(error)),
            }),
        }
    }
}
