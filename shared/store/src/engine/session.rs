//! What the engine needs of a database: one connection to write on, and reads apart from it.

use super::columns::Columns;
use super::rows::Fields;
use crate::StoreError;
use crate::sql::Text;
use std::future::Future;

/// One argument of a statement.
#[derive(Clone)]
pub(crate) enum Arg<'a> {
    Int(Option<i64>),
    Text(Option<&'a str>),
    /// A text that was made of another one on the way.
    Made(String),
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

/// What a statement is given: single values, or the columns of many rows followed by single values.
pub(crate) enum Args<'a> {
    Values(&'a [Arg<'a>]),
    Rows(Columns, &'a [Arg<'a>]),
}

/// A statement that writes rows; none of those that are given together sees what the others write.
pub(crate) struct Write {
    pub action: &'static str,
    pub text: &'static Text,
    pub rows: Columns,
    /// Whether each of the rows has to be written; otherwise some may be there already.
    pub each: bool,
}

impl Write {
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

/// Why a transaction did not end with a commit that we know of.
pub(crate) enum CommitError {
    /// A statement that had waited for the commit failed, and all of it was rolled back.
    Failed(StoreError),
    /// It was rolled back.
    Refused(StoreError),
    /// The connection broke while the database was committing: [`Session::outcome`] finds out.
    Unknown(StoreError),
}

/// A connection that writes, one transaction after the other.
pub(crate) trait Session: Send + 'static {
    type Row: Fields + Send + Sync;

    fn begin(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn commit(&mut self) -> impl Future<Output = Result<(), CommitError>> + Send;

    fn rollback(&mut self) -> impl Future<Output = ()> + Send;

    /// Whether the transaction that ended with [`CommitError::Unknown`] was committed after all; connects anew.
    fn outcome(&mut self) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Runs a statement and returns its rows.
    fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;

    /// Reads rows that nothing is decided upon for good, such as new numbers, or what a constraint checks once more: they may be read
    /// before the transaction begins.
    fn look(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send {
        self.rows(action, text, args)
    }

    /// Runs a statement and returns how many rows it changed.
    fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Runs statements that write, in one go where the database can: at once, or with what follows.
    fn write(&mut self, writes: Vec<Write>) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A session that can make a transaction of one statement that returns rows.
pub(crate) trait Alone: Session {
    /// Runs a statement that is a transaction of its own and returns its rows. Its last two parameters are the names of the
    /// writer and of the transaction, as [`Session::outcome`] looks for them; they are added here.
    fn rows_alone(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, CommitError>> + Send;
}

/// Connections that read; each read stands alone.
pub(crate) trait Reader: Send + Sync + 'static {
    type Row: Fields + Send + Sync;

    /// Whether what is written is encrypted.
    fn seals(&self) -> bool {
        false
    }

    fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;
}
