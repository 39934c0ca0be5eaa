//! Running one statement for many rows: bulk writes, reads by key, and rows into values.

use super::columns::{BulkRow, Columns};
use super::rows::Inconsistency;
use super::session::{Arg, Args, Row, Session, Write};
use crate::StoreError;
use crate::sql::Text;
use serde::Serialize;
use turnstone_domain::RawJson;

/// A value as JSON text.
pub(crate) fn as_json<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|e| StoreError::Database { action: "encode a value", message: e.to_string() })
}

/// The same, to be put into another value.
pub(super) fn as_raw<T: Serialize + ?Sized>(value: &T) -> Result<RawJson, StoreError> {
    RawJson::written(value)
        .map_err(|e| StoreError::Database { action: "encode a value", message: e.to_string() })
}

/// Statements that write, gathered to be run in one go.
#[derive(Default)]
pub(super) struct Writes(Vec<Write>);

impl Writes {
    /// Adds rows, each of which has to be written.
    pub(super) fn all<R: BulkRow>(&mut self, action: &'static str, text: &'static Text, rows: Vec<R>) {
        self.add(action, text, rows, true);
    }

    /// Adds rows that may be there already.
    pub(super) fn if_new<R: BulkRow>(&mut self, action: &'static str, text: &'static Text, rows: Vec<R>) {
        self.add(action, text, rows, false);
    }

    fn add<R: BulkRow>(&mut self, action: &'static str, text: &'static Text, rows: Vec<R>, each: bool) {
        if !rows.is_empty() {
            self.0.push(Write { action, text, rows: Columns::of(rows), each });
        }
    }

    /// Runs them.
    pub(super) async fn run(self, session: &mut Session) -> Result<(), StoreError> {
        if self.0.is_empty() { Ok(()) } else { session.write(self.0).await }
    }
}

/// Reads the rows that belong to the given keys.
pub(super) async fn read_by<K: BulkRow, T>(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    keys: Vec<K>,
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = session.rows(action, text, Args::Rows(Columns::of(keys), &[])).await?;
    decode_all(&rows, decode)
}

/// Reads by keys and single values what may be read before the transaction begins: see [`Session::look`].
pub(super) async fn look_by<K: BulkRow, T>(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    keys: Vec<K>,
    values: &[Arg<'_>],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    decode_all(&session.look(action, text, Args::Rows(Columns::of(keys), values)).await?, decode)
}

/// Reads rows by single values.
pub(super) async fn read<T>(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    args: &[Arg<'_>],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    decode_all(&session.rows(action, text, Args::Values(args)).await?, decode)
}

/// Decodes all rows.
pub(super) fn decode_all<T>(
    rows: &[Row],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(|row| decode(row).map_err(StoreError::from)).collect()
}
