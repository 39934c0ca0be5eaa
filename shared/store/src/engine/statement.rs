//! Running one statement for many rows: bulk writes, reads by key, and rows into values.

use super::columns::Columns;
use super::rows::{Batch, Inconsistency, Inserted};
use super::session::{Arg, Args, Row, Session, Write};
use crate::sql::Text;
use crate::{StoreError, damage};
use serde::Serialize;

/// A value as JSON text.
pub(crate) fn as_json<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|e| StoreError::Database { action: "encode a value", message: e.to_string() })
}

/// Statements that write, gathered to be run in one go.
#[derive(Default)]
pub(super) struct Writes(Vec<Result<Write, StoreError>>);

impl Writes {
    /// Inserts rows, none of which may be there already.
    pub(super) fn insert<R: Inserted>(&mut self, action: &'static str, rows: Vec<R>) {
        self.all(action, &R::table().inserts.new, rows);
    }

    /// Inserts those of the rows that are not there yet.
    pub(super) fn insert_missing<R: Inserted>(&mut self, action: &'static str, rows: Vec<R>) {
        self.some(action, &R::table().inserts.missing, rows);
    }

    /// Inserts rows, or replaces those that are there.
    pub(super) fn insert_over<R: Inserted>(&mut self, action: &'static str, rows: Vec<R>) {
        self.all(action, &R::table().inserts.over, rows);
    }

    /// Adds rows, each of which has to be written.
    pub(super) fn all<R: Batch>(&mut self, action: &'static str, text: &'static Text, rows: Vec<R>) {
        if !rows.is_empty() {
            self.add(action, text, Columns::of(rows, text), true);
        }
    }

    /// As [`Writes::all`], of rows that are kept.
    pub(super) fn all_kept<R: Batch>(&mut self, action: &'static str, text: &'static Text, rows: &[&R]) {
        if !rows.is_empty() {
            self.add(action, text, Columns::of_kept(rows, text), true);
        }
    }

    /// Adds rows, some of which may not be written.
    pub(super) fn some<R: Batch>(&mut self, action: &'static str, text: &'static Text, rows: Vec<R>) {
        if !rows.is_empty() {
            self.add(action, text, Columns::of(rows, text), false);
        }
    }

    fn add(
        &mut self,
        action: &'static str,
        text: &'static Text,
        rows: Result<Columns, StoreError>,
        each: bool,
    ) {
        self.0.push(rows.map(|rows| Write { action, text, rows, each, numbers: false }));
    }

    /// Lets `text` take the numbers of all rows: those that they have are [places](Columns::placed) among them.
    pub(super) fn placed<R: Batch>(self, action: &'static str, text: &'static Text, takers: Vec<R>) -> Self {
        let takers = Columns::of(takers, text);
        let takers = takers.map(|rows| Write { action, text, rows, each: false, numbers: true });
        let placed = self.0.into_iter().map(|write| {
            let write = write?;
            Ok(Write { rows: Columns { placed: true, ..write.rows }, ..write })
        });
        Self(std::iter::once(takers).chain(placed).collect())
    }

    /// Returns them.
    ///
    /// # Errors
    /// A value of a row cannot be encoded.
    pub(super) fn done(self) -> Result<Vec<Write>, StoreError> {
        self.0.into_iter().collect()
    }

    /// Runs them.
    pub(super) async fn run(self, session: &mut Session) -> Result<(), StoreError> {
        session.write(self.done()?).await
    }
}

/// Runs a statement for rows, and returns how many were changed.
pub(super) async fn execute<R: Batch>(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    rows: Vec<R>,
    values: &[Arg<'_>],
) -> Result<u64, StoreError> {
    session.execute(action, text, Args::Rows(Columns::of(rows, text)?, values)).await
}

/// Reads the rows that belong to the given keys.
pub(super) async fn read_by<K: Batch, T>(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    keys: Vec<K>,
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = session.rows(action, text, Args::Rows(Columns::of(keys, text)?, &[])).await?;
    decode_all(&rows, decode)
}

/// Reads by keys and single values what may be read before the transaction begins: see `look` of [`Session`].
pub(super) async fn look_by<K: Batch, T>(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    keys: Vec<K>,
    values: &[Arg<'_>],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    decode_all(&session.look(action, text, Args::Rows(Columns::of(keys, text)?, values)).await?, decode)
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

/// Decodes independent rows. A row that cannot be read is named in the log, counted and left out.
pub(super) fn decode_readable<T>(
    action: &'static str,
    rows: &[Row],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Vec<T> {
    rows.iter().filter_map(|row| decode(row).map_err(|wrong| leave_out(action, wrong)).ok()).collect()
}

fn leave_out(action: &'static str, wrong: Inconsistency) {
    let error = StoreError::from(wrong);
    if damage::count(&error.to_string()) {
        tracing::error!(%error, action, "a row that cannot be read is left out");
    }
}

/// As [`read`], without the rows that cannot be read: see [`decode_readable`].
pub(super) async fn read_readable<T>(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    args: &[Arg<'_>],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    Ok(decode_readable(action, &session.rows(action, text, Args::Values(args)).await?, decode))
}

/// Decodes all rows.
pub(super) fn decode_all<T>(
    rows: &[Row],
    decode: fn(&Row) -> Result<T, Inconsistency>,
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(|row| decode(row).map_err(StoreError::from)).collect()
}
