//! A connection to the database file, used by the thread that calls. Its statements are prepared once.

use crate::StoreError;
use crate::engine::columns::{Column, Columns};
use crate::engine::session::{Arg, Args, Durability, Write};
use crate::sql::Text;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, ffi};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a connection waits for another process's write before it gives up.
const BUSY: Duration = Duration::from_secs(10);
/// More prepared statements than this are not kept.
const PREPARED: usize = 256;

/// A database error as ours: [`StoreError::Unavailable`] when trying again helps.
pub(super) fn failed(action: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| {
        let message = error.to_string();
        if is_full(&error) {
            StoreError::Unavailable { action, message }
        } else {
            StoreError::Database { action, message }
        }
    }
}

/// Returns true when the disk has no room for the database, its log, or the index of the log.
fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        error.code == ErrorCode::DiskFull || error.extended_code == ffi::SQLITE_IOERR_SHMSIZE
    })
}

/// A statement and the values of its parameters.
pub(super) struct BoundValues {
    sql: &'static str,
    values: Vec<Value>,
}

impl BoundValues {
    /// Takes the text for one row where there is one row, and passes more of them as JSON.
    pub(super) fn new(text: &Text, args: Args<'_>) -> Result<Self, StoreError> {
        let (sql, mut values, single) = match args {
            Args::Values(single) => (text.sqlite, Vec::with_capacity(single.len()), single),
            Args::Rows(rows, single) if rows.rows == 1 && !text.sqlite_row.is_empty() => {
                (text.sqlite_row, rows.columns.into_iter().map(only).collect(), single)
            }
            Args::Rows(rows, single) => (text.sqlite, vec![Value::Text(rows.to_json()?)], single),
        };
        values.extend(single.iter().map(|arg| match arg {
            Arg::Int(value) => Value::from(*value),
            Arg::Text(value) => Value::from(value.map(str::to_owned)),
        }));
        Ok(Self { sql, values })
    }

    /// All rows as JSON.
    pub(super) fn of_rows(text: &Text, rows: &Columns) -> Result<Self, StoreError> {
        Ok(Self { sql: text.sqlite, values: vec![Value::Text(rows.to_json()?)] })
    }
}

/// The value of a column of one row.
fn only(column: Column) -> Value {
    match column {
        Column::Ints(values) => Value::from(values.into_iter().next().flatten()),
        Column::Texts(values) => {
            Value::from(values.into_iter().next().flatten().map(|text| text.into_owned()))
        }
    }
}

/// The names of a statement's columns.
type ColumnNames = Arc<[String]>;

/// A row: its values, and the names of their columns.
pub(crate) struct Cells {
    names: ColumnNames,
    values: Vec<Value>,
}

impl Cells {
    /// Looks for a column from `next` on: most rows are read in the order of their columns.
    fn value(&self, column: &str, next: &AtomicUsize) -> Result<&Value, String> {
        let first = next.load(Ordering::Relaxed);
        let (before, after) = self.names.split_at(first.min(self.names.len()));
        let found = after.iter().position(|name| name == column).map(|at| before.len() + at);
        let at = found.or_else(|| before.iter().position(|name| name == column));
        let at = at.ok_or_else(|| format!("the statement has no column {column}"))?;
        next.store(at + 1, Ordering::Relaxed);
        Ok(&self.values[at])
    }

    /// Returns a whole number.
    pub(crate) fn int(&self, column: &str, next: &AtomicUsize) -> Result<Option<i64>, String> {
        match self.value(column, next)? {
            Value::Null => Ok(None),
            Value::Integer(value) => Ok(Some(*value)),
            other => Err(format!("it is no whole number but of type {}", other.data_type())),
        }
    }

    /// Returns a text.
    pub(crate) fn text(&self, column: &str, next: &AtomicUsize) -> Result<Option<&str>, String> {
        match self.value(column, next)? {
            Value::Null => Ok(None),
            Value::Text(value) => Ok(Some(value)),
            Value::Blob(_) => Err("it is no text of UTF-8".to_owned()),
            other => Err(format!("it is no text but of type {}", other.data_type())),
        }
    }

    /// Returns the names of the columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the bytes of a text, whether they are one or not.
    pub(crate) fn bytes(&self, column: &str, next: &AtomicUsize) -> Option<&[u8]> {
        match self.value(column, next).ok()? {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// A value as it is kept. A text that is no UTF-8 becomes bytes, so that it is an error of its column, not of all rows.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(bytes.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

/// Returns the value of SQLite's `synchronous`.
fn synchronous(durability: Durability) -> &'static str {
    match durability {
        Durability::AtOnce => "FULL",
        Durability::WithTheNext => "NORMAL",
    }
}

/// See the module.
pub(super) struct SqliteConnection {
    inner: Connection,
    /// By the address of the statement's text.
    names: HashMap<usize, ColumnNames>,
    durability: Durability,
    /// True while the latest commit has the mark of [`super::log`].
    pub(super) marked: bool,
}

impl SqliteConnection {
    /// Opens the file, and creates it if need be. A commit returns after it was flushed to the disk, until it is
    /// [made otherwise](Self::set_durability).
    pub(super) fn to_write(path: &Path) -> rusqlite::Result<Self> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        flags |= OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut conn = Self::open(path, flags)?;
        conn.inner.pragma_update(None, "journal_mode", "WAL")?;
        conn.inner.pragma_update(None, "synchronous", synchronous(conn.durability))?;
        conn.keep_log();
        Ok(conn)
    }

    /// Opens a file that exists, for reading.
    pub(super) fn to_read(path: &Path) -> rusqlite::Result<Self> {
        Self::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
    }

    fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Self> {
        let inner = Connection::open_with_flags(path, flags)?;
        inner.busy_timeout(BUSY)?;
        inner.pragma_update(None, "foreign_keys", false)?;
        inner.pragma_update(None, "temp_store", "MEMORY")?;
        inner.set_prepared_statement_cache_capacity(PREPARED);
        Ok(Self { inner, names: HashMap::new(), durability: Durability::AtOnce, marked: false })
    }

    /// The connection itself.
    pub(super) fn inner(&mut self) -> &mut Connection {
        &mut self.inner
    }

    /// Makes the commits from now on wait for the disk, or not. The log is one file: a flush flushes all commits before it.
    pub(super) fn set_durability(&mut self, durability: Durability) -> rusqlite::Result<()> {
        if self.durability != durability {
            // SQLite changes it when it prepares the statement, so a statement that is prepared once has no effect.
            self.inner.pragma_update(None, "synchronous", synchronous(durability))?;
            self.durability = durability;
        }
        Ok(())
    }

    /// Begins, commits or rolls back.
    pub(super) fn control(&self, sql: &'static str) -> rusqlite::Result<()> {
        self.inner.prepare_cached(sql)?.raw_execute().map(|_| ())
    }

    /// Runs a statement and returns its rows.
    pub(super) fn rows(&mut self, BoundValues { sql, values }: &BoundValues) -> rusqlite::Result<Vec<Cells>> {
        let mut statement = self.inner.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        let names = self
            .names
            .entry(sql.as_ptr().addr())
            .or_insert_with(|| statement.column_names().into_iter().map(str::to_owned).collect());
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(names.len());
            for at in 0..names.len() {
                values.push(owned(row.get_ref(at)?));
            }
            found.push(Cells { names: Arc::clone(names), values });
        }
        Ok(found)
    }

    /// Runs a statement, or several that have no parameters, and returns how many rows it changed.
    pub(super) fn execute(&mut self, BoundValues { sql, values }: &BoundValues) -> rusqlite::Result<u64> {
        if values.is_empty() {
            let before = self.inner.total_changes();
            self.inner.execute_batch(sql)?;
            return Ok(self.inner.total_changes() - before);
        }
        let mut statement = self.inner.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        Ok(statement.raw_execute()? as u64)
    }

    /// Runs a statement row by row, and returns how many rows it wrote.
    pub(super) fn write(&mut self, write: &Write) -> rusqlite::Result<u64> {
        let mut statement = self.inner.prepare_cached(write.text.sqlite_row)?;
        let mut written = 0;
        for row in 0..write.rows.rows {
            for (column, at) in write.rows.columns.iter().zip(1..) {
                match column {
                    Column::Ints(values) => statement.raw_bind_parameter(at, values[row])?,
                    Column::Texts(values) => statement.raw_bind_parameter(at, values[row].as_deref())?,
                }
            }
            written += statement.raw_execute()? as u64;
        }
        Ok(written)
    }
}

/// Binds the values that a statement has parameters for: not every text uses the last ones.
fn bind(statement: &mut CachedStatement<'_>, values: &[Value]) -> rusqlite::Result<()> {
    let parameters = statement.parameter_count();
    values
        .iter()
        .take(parameters)
        .zip(1..)
        .try_for_each(|(value, at)| statement.raw_bind_parameter(at, value))
}
