//! The two databases behind one type: a connection that writes, connections that read, and their rows.
//!
//! A [`Connection`] is implemented by each database, and by what seals the values of another one. Nothing above it knows which
//! one it is.

use super::columns::Columns;
use super::rows::{CommitRow, Fields};
use crate::cipher::{Found, Keyring, SealedConnection, found};
use crate::sql::{self, Text};
use crate::{StoreError, postgres, sqlite};
use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{Column as _, Row as _};
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_domain::Ids;
use turnstone_domain::ids::{commit_id, commit_id_after};

/// One argument of a statement.
#[derive(Clone)]
pub(crate) enum Arg<'a> {
    Int(Option<i64>),
    Text(Option<&'a str>),
}

impl From<i64> for Arg<'_> {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<u32> for Arg<'_> {
    fn from(value: u32) -> Self {
        Self::Int(Some(value.into()))
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Some(value))
    }
}

impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Self::Text(value)
    }
}

/// The parameters of a statement: single values, or the columns of many rows followed by single values.
#[derive(Clone)]
pub(crate) enum Args<'a> {
    Values(&'a [Arg<'a>]),
    Rows(Columns, &'a [Arg<'a>]),
}

impl Args<'_> {
    /// Refuses single values that PostgreSQL cannot store, on both databases alike. [`Columns`] are checked when they are made.
    fn refuse_nul(&self, action: &'static str) -> Result<(), StoreError> {
        let (Self::Values(single) | Self::Rows(_, single)) = self;
        let has_nul = |arg: &Arg<'_>| matches!(arg, Arg::Text(Some(text)) if text.contains('\0'));
        if single.iter().any(has_nul) { Err(StoreError::Nul { text: action }) } else { Ok(()) }
    }
}

/// A statement that writes rows; none of those that are given together sees what the others write.
pub(crate) struct Write {
    pub action: &'static str,
    pub text: &'static Text,
    pub rows: Columns,
    /// True when each of the rows has to be written; otherwise some may be there already.
    pub each: bool,
    /// True for the statement that takes new numbers for the rows of the statements behind it. It writes nothing.
    pub numbers: bool,
}

impl Write {
    /// Adds a commit that writes events.
    pub(crate) fn of_commit(id: i64) -> Result<Self, StoreError> {
        let text = &sql::INSERT_COMMIT;
        let rows = Columns::of(vec![CommitRow { id }], text)?;
        Ok(Self { action: "add a commit", text, rows, each: true, numbers: false })
    }

    /// Refuses a count that is not what it should be.
    pub(crate) fn check(&self, written: u64) -> Result<(), StoreError> {
        let expected = self.rows.rows as u64;
        if !self.each || written == expected {
            return Ok(());
        }
        let message = format!("{written} of {expected} rows were written");
        Err(StoreError::Database { action: self.action, message })
    }
}

/// A row limit as the databases count.
pub(crate) fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// When a commit outlives a crash of the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Durability {
    /// From its end on: it waits for the disk.
    AtOnce,
    /// From the end of the next one that waits. A crash before that undoes it, and nothing else.
    WithTheNext,
}

/// Why a transaction did not end with a commit that we know of.
pub(crate) enum CommitError {
    /// A statement that had waited for the commit failed, and all of it was rolled back.
    Failed(StoreError),
    /// It was rolled back.
    Refused(StoreError),
    /// The connection broke while the database was committing: [`Connection::outcome`] finds out.
    Unknown(StoreError),
}

/// A row of either database. Values that were sealed are kept beside it, opened.
pub(crate) struct Row {
    cells: Cells,
    /// The column behind the one that was read last: most are read in their order.
    next: AtomicUsize,
    opened: Vec<(&'static str, Result<String, String>)>,
}

enum Cells {
    Sqlite(sqlite::Cells),
    Postgres(PgRow),
}

impl Row {
    /// Replaces the value of a sealed column, or says why it cannot be opened.
    pub(crate) fn open(&mut self, column: &'static str, value: Result<String, String>) {
        self.opened.push((column, value));
    }
}

impl Row {
    /// Returns the names of its columns.
    pub(crate) fn columns(&self) -> Vec<&str> {
        match &self.cells {
            Cells::Sqlite(row) => row.columns().collect(),
            Cells::Postgres(row) => row.columns().iter().map(sqlx::Column::name).collect(),
        }
    }

    /// Returns a text as it is stored, sealed or not; bytes that are no text are replaced.
    pub(crate) fn stored(&self, column: &str) -> Option<Cow<'_, str>> {
        match &self.cells {
            Cells::Sqlite(row) => row.bytes(column, &self.next).map(String::from_utf8_lossy),
            Cells::Postgres(row) => read::<&str>(row, column, &self.next).ok().flatten().map(Cow::Borrowed),
        }
    }
}

impl From<sqlite::Cells> for Row {
    fn from(row: sqlite::Cells) -> Self {
        Self { cells: Cells::Sqlite(row), next: AtomicUsize::new(0), opened: Vec::new() }
    }
}

impl From<PgRow> for Row {
    fn from(row: PgRow) -> Self {
        Self { cells: Cells::Postgres(row), next: AtomicUsize::new(0), opened: Vec::new() }
    }
}

/// Reads a column by its name. It is looked for from `next` on, which costs less than hashing its name.
fn read<'r, T>(row: &'r PgRow, column: &str, next: &AtomicUsize) -> Result<Option<T>, sqlx::Error>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    let (columns, from) = (row.columns(), next.load(Ordering::Relaxed));
    let mut places = (from..columns.len()).chain(0..from.min(columns.len()));
    let found = places.find(|at| columns[*at].name() == column);
    let at = found.ok_or_else(|| sqlx::Error::ColumnNotFound(column.to_owned()))?;
    next.store(at + 1, Ordering::Relaxed);
    row.try_get(at)
}

impl Fields for Row {
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        match &self.cells {
            Cells::Sqlite(row) => row.int(column, &self.next),
            Cells::Postgres(row) => read(row, column, &self.next).map_err(|error| error.to_string()),
        }
    }

    fn text(&self, column: &str) -> Result<Option<&str>, String> {
        if let Some((_, opened)) = self.opened.iter().find(|(name, _)| *name == column) {
            return opened.as_deref().map(Some).map_err(Clone::clone);
        }
        match &self.cells {
            Cells::Sqlite(row) => row.text(column, &self.next),
            Cells::Postgres(row) => read(row, column, &self.next).map_err(|error| error.to_string()),
        }
    }
}

/// A connection that writes, one transaction after the other: of a database, or [sealed](crate::cipher::SealedConnection).
#[async_trait]
pub(crate) trait Connection: Send {
    /// Returns whether the database is in this process, and this connection the only one that writes to it. Then its calls
    /// block the thread, so who uses it has a thread of its own. And only a crash of the machine undoes a commit, so a commit may
    /// be durable [with the next one](Durability::WithTheNext). Otherwise each commit waits for the disk.
    fn is_embedded(&self) -> bool;

    /// Returns whether it can write rows that are [placed](Columns::placed): without it, numbers are read before.
    fn numbers_rows(&self) -> bool {
        false
    }

    /// Sets whether the next transactions have work under a lease alone. Then an answer that is late is looked up early enough to
    /// try again while the lease lasts. An embedded database is never late.
    fn hurry(&mut self, _hurried: bool) {}

    /// Begins a transaction.
    async fn begin(&mut self, durability: Durability) -> Result<(), StoreError>;

    /// Commits it. `events` is its identity if it has written events. Its row is added behind everything else, so its place is
    /// behind that of every commit that this one has waited for.
    async fn commit(&mut self, events: Option<i64>) -> Result<(), CommitError>;

    /// Rolls it back.
    async fn rollback(&mut self);

    /// Returns whether the transaction that ended with [`CommitError::Unknown`] was committed; connects anew.
    async fn outcome(&mut self) -> Result<bool, StoreError>;

    /// Runs a statement and returns its rows.
    async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError>;

    /// Reads rows on which no decision is final, such as new numbers or what a constraint checks again. They may be read
    /// before the transaction begins.
    async fn look(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError>;

    /// Runs a statement and returns how many rows it changed.
    async fn execute(&mut self, action: &'static str, text: &Text, args: Args<'_>)
    -> Result<u64, StoreError>;

    /// Runs statements that write, in one go where the database can: at once, or with what follows.
    async fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError>;

    /// Runs a statement that is a transaction of its own and returns its rows. On PostgreSQL its last two parameters are the
    /// names of the writer and of the transaction, as [`Connection::outcome`] looks for them; they are added here.
    async fn rows_alone(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, CommitError>;
}

/// The connection on which the engine writes.
pub(crate) struct Session {
    inner: Box<dyn Connection>,
    ids: Arc<dyn Ids>,
    /// The newest commit, if this connection makes all of them. Later ones have higher identities.
    newest: Option<i64>,
    /// Rows that were written.
    changes: u64,
    /// The identity of the transaction, once it has written to the journal.
    commit: Option<i64>,
    /// True once it has written events.
    has_events: bool,
}

impl Session {
    /// `inner` with its values sealed by `ring`; without one it is as it is.
    pub(crate) fn new(
        inner: impl Connection + 'static,
        ring: Option<Arc<Keyring>>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        let inner: Box<dyn Connection> = match ring {
            Some(ring) => Box::new(SealedConnection { inner, ring }),
            None => Box::new(inner),
        };
        Self { inner, ids, newest: None, changes: 0, commit: None, has_events: false }
    }

    /// Returns the session of the only process that writes. Each commit gets an identity above `newest` and above those of earlier
    /// commits.
    pub(crate) fn after(mut self, newest: i64) -> Self {
        self.newest = Some(newest);
        self
    }

    /// As [`Connection::begin`].
    pub(crate) async fn begin(&mut self, durability: Durability) -> Result<(), StoreError> {
        (self.commit, self.has_events) = (None, false);
        self.inner.begin(durability).await
    }

    /// As [`Connection::commit`].
    pub(crate) async fn commit(&mut self) -> Result<(), CommitError> {
        let events = self.commit.take().filter(|_| self.has_events);
        self.inner.commit(events).await
    }

    /// Returns the identity of the transaction, for rows of the journal. `has_events` is true if the rows have events.
    pub(crate) fn commit_id(&mut self, has_events: bool) -> i64 {
        self.has_events |= has_events;
        let commit = self.commit.unwrap_or_else(|| self.own_commit_id());
        self.commit = Some(commit);
        commit
    }

    /// Returns a new identity, for a statement that is a commit of its own.
    pub(crate) fn own_commit_id(&mut self) -> i64 {
        let new = self.ids.next();
        match &mut self.newest {
            Some(newest) => {
                *newest = commit_id_after(*newest, &new);
                *newest
            }
            None => commit_id(&new),
        }
    }

    /// Returns how many rows were written so far: a write that raises it changed something.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// As [`Connection::rows`].
    pub(crate) async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        args.refuse_nul(action)?;
        self.inner.rows(action, text, args).await
    }

    /// As [`Connection::look`].
    pub(crate) async fn look(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        args.refuse_nul(action)?;
        self.inner.look(action, text, args).await
    }

    /// As [`Connection::execute`].
    pub(crate) async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        args.refuse_nul(action)?;
        let changed = self.inner.execute(action, text, args).await?;
        self.changes += changed;
        Ok(changed)
    }

    /// As [`Connection::rows_alone`].
    pub(crate) async fn rows_alone(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, CommitError> {
        args.refuse_nul(action).map_err(CommitError::Refused)?;
        self.inner.rows_alone(action, text, args).await
    }

    /// As [`Connection::write`].
    pub(crate) async fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.changes += writes.iter().map(|write| write.rows.rows as u64).sum::<u64>();
        self.inner.write(writes).await
    }
}

impl Deref for Session {
    type Target = dyn Connection;

    fn deref(&self) -> &Self::Target {
        &*self.inner
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.inner
    }
}

/// Connections that read; each read is a transaction of its own.
#[derive(Clone)]
pub(crate) enum Readers {
    Sqlite(sqlite::Readers),
    Postgres(postgres::Readers),
}

impl Readers {
    pub(crate) async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        // The futures of both databases are large, and callers keep this one in theirs.
        match self {
            Self::Sqlite(readers) => Box::pin(readers.read(action, text, args)).await,
            Self::Postgres(readers) => Box::pin(readers.read(action, text, args)).await,
        }
    }
}

/// The connections on which the engine reads.
pub(crate) struct Reader {
    inner: Readers,
    ring: Option<Arc<Keyring>>,
}

impl Reader {
    /// Returns `inner`, with its values opened by `ring` if there is one.
    pub(crate) fn new(inner: Readers, ring: Option<Arc<Keyring>>) -> Self {
        Self { inner, ring }
    }

    /// Returns whether what is written is encrypted.
    pub(crate) fn seals(&self) -> bool {
        self.ring.is_some()
    }

    pub(crate) async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.read_sealed(action, text, args, found(text)).await
    }

    /// As [`Reader::read`], for a statement that is in no file: `found` is what of its rows is sealed.
    pub(crate) async fn read_sealed(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
        found: &[Found],
    ) -> Result<Vec<Row>, StoreError> {
        args.refuse_nul(action)?;
        let mut rows = self.inner.read(action, text, args).await?;
        let Some(ring) = &self.ring else { return Ok(rows) };
        if ring.lacks(found, &rows) {
            let new = self.inner.read("read data keys", &sql::SELECT_DATA_KEYS, Args::Values(&[])).await?;
            ring.learn_rows(&new)?;
        }
        ring.open_rows(found, &mut rows);
        Ok(rows)
    }
}
