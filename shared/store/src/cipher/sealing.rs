//! A session or reader whose values are sealed on their way in and opened on their way out. Without a keyring both hand
//! through.

use super::key::{Place, Sealed};
use super::keyring::{Keyring, Known};
use super::places::{FOUND, Found, KeyPart, WRITTEN, Written};
use crate::StoreError;
use crate::engine::columns::{Column, Columns};
use crate::engine::rows::Fields;
use crate::engine::session::{Alone, Arg, Args, CommitError, Reader, Session, Write};
use crate::sql::{self, Text};
use std::borrow::Cow;
use std::sync::Arc;

/// See the module.
pub(crate) struct Sealing<T> {
    inner: T,
    ring: Option<Arc<Keyring>>,
}

impl<T> Sealing<T> {
    /// `inner` with its values sealed by `ring`; without one it is as it is.
    pub(crate) fn new(inner: T, ring: Option<Arc<Keyring>>) -> Self {
        Self { inner, ring }
    }
}

/// A row whose sealed columns were opened.
pub(crate) struct Opened<R> {
    row: R,
    opened: Vec<(&'static str, Result<String, String>)>,
}

impl<R: Fields> Fields for Opened<R> {
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        self.row.int(column)
    }

    fn text(&self, column: &str) -> Result<Option<&str>, String> {
        match self.opened.iter().find(|(name, _)| *name == column) {
            Some((_, Ok(text))) => Ok(Some(text)),
            Some((_, Err(why))) => Err(why.clone()),
            None => self.row.text(column),
        }
    }
}

fn plain<R>(rows: Vec<R>) -> Vec<Opened<R>> {
    rows.into_iter().map(|row| Opened { row, opened: Vec::new() }).collect()
}

/// What there is to seal in a statement.
fn written(text: &Text) -> Option<&'static Written> {
    WRITTEN.iter().find(|written| std::ptr::eq(written.text, text))
}

/// What there is to open in the rows of a statement.
fn found(text: &Text) -> impl Iterator<Item = &'static Found> {
    FOUND.iter().filter(move |found| std::ptr::eq(found.text, text))
}

/// What tells a row from others, as one text.
fn row_key<'a>(mut parts: Vec<Cow<'a, str>>) -> Cow<'a, str> {
    match parts.len() {
        1 => parts.swap_remove(0),
        // Lengths before texts, so that no two lists make one key.
        _ => parts.iter().map(|part| format!("{}:{part}", part.len())).collect::<Vec<_>>().join("/").into(),
    }
}

/// What holds no more than that it is empty stays as it is.
fn is_empty(text: &str) -> bool {
    matches!(text, "{}" | "[]")
}

fn misplaced(written: &Written) -> StoreError {
    let message = format!("a parameter of {} is not where it was expected", written.table);
    StoreError::Database { action: "seal a value", message }
}

impl Keyring {
    /// Seals the columns of a statement.
    fn seal_columns(&self, text: &Text, columns: &mut Columns) -> Result<(), StoreError> {
        let Some(written) = written(text) else { return Ok(()) };
        let cell = |columns: &Columns, at: usize, row: usize| match columns.columns.get(at) {
            Some(Column::Ints(values)) => values.get(row).copied().flatten().map(|n| n.to_string()),
            Some(Column::Texts(values)) => values.get(row).cloned().flatten().map(Cow::into_owned),
            None => None,
        };
        for row in 0..columns.rows {
            let parts = written.key.iter().map(|at| cell(columns, *at, row).map(Cow::Owned));
            let key = row_key(parts.collect::<Option<_>>().ok_or_else(|| misplaced(written))?);
            for (at, column) in written.columns {
                let Some(Column::Texts(values)) = columns.columns.get_mut(*at) else {
                    return Err(misplaced(written));
                };
                let place = Place { table: written.table, column, row: &key };
                if let Some(Some(value)) = values.get_mut(row)
                    && !is_empty(value)
                {
                    *value = Cow::Owned(self.seal(value, place)?);
                }
            }
        }
        Ok(())
    }

    /// The values of a statement, sealed.
    fn seal_values<'a>(&self, text: &Text, values: &[Arg<'a>]) -> Result<Vec<Arg<'a>>, StoreError> {
        let mut values = values.to_vec();
        let Some(written) = written(text) else { return Ok(values) };
        let cell = |at: &usize| match values.get(*at) {
            Some(Arg::Int(Some(number))) => Some(Cow::Owned(number.to_string())),
            Some(Arg::Text(Some(text))) => Some(Cow::Borrowed(*text)),
            _ => None,
        };
        let parts: Option<Vec<_>> = written.key.iter().map(cell).collect();
        let key = row_key(parts.ok_or_else(|| misplaced(written))?);
        for (at, column) in written.columns {
            let place = Place { table: written.table, column, row: &key };
            match values.get_mut(*at) {
                Some(value @ Arg::Text(Some(_))) => {
                    if let Arg::Text(Some(clear)) = value
                        && !is_empty(clear)
                    {
                        *value = Arg::Made(self.seal(clear, place)?);
                    }
                }
                Some(Arg::Text(None)) => {}
                _ => return Err(misplaced(written)),
            }
        }
        Ok(values)
    }

    /// Whether rows hold something that is sealed with a data key which is not known yet.
    fn lacks<R: Fields>(&self, text: &Text, rows: &[R]) -> bool {
        let known = self.known();
        let is_unknown = |row: &R, column: &str| {
            let sealed = row.text(column).ok().flatten().and_then(Sealed::read);
            sealed.is_some_and(|sealed| known.find(sealed.key).is_none())
        };
        found(text)
            .any(|found| rows.iter().any(|row| found.columns.iter().any(|column| is_unknown(row, column))))
    }

    /// The rows with what is sealed in them opened.
    fn open_rows<R: Fields>(&self, text: &Text, rows: Vec<R>) -> Vec<Opened<R>> {
        let known = self.known();
        let open = |row: R| {
            let mut opened = Vec::new();
            for found in found(text) {
                open_row(&known, found, &row, &mut opened);
            }
            Opened { row, opened }
        };
        rows.into_iter().map(open).collect()
    }
}

fn open_row<R: Fields>(
    known: &Known,
    found: &'static Found,
    row: &R,
    opened: &mut Vec<(&'static str, Result<String, String>)>,
) {
    let part = |part: &KeyPart| match part {
        KeyPart::Int(column) => row.int(column).ok().flatten().map(|number| Cow::Owned(number.to_string())),
        KeyPart::Text(column) => row.text(column).ok().flatten().map(Cow::Borrowed),
    };
    let mut key = None;
    for column in found.columns {
        let Some(sealed) = row.text(column).ok().flatten().and_then(Sealed::read) else { continue };
        let key = key.get_or_insert_with(|| {
            row_key(found.key.iter().map(|p| part(p).unwrap_or(Cow::Borrowed("NULL"))).collect())
        });
        let place = Place { table: found.table, column, row: key };
        opened.push((column, open(known, sealed, place)));
    }
}

fn open(known: &Known, sealed: Sealed<'_>, place: Place<'_>) -> Result<String, String> {
    let Some(key) = known.find(sealed.key) else {
        return Err(format!(
            "the sealed value of {place}, names data key {}, which no configured key opens: see [encryption]",
            sealed.key
        ));
    };
    key.open(sealed, place).ok_or_else(|| {
        format!(
            "the sealed value of {place}, was damaged or changed since it was sealed, or belongs elsewhere"
        )
    })
}

impl<S: Session> Session for Sealing<S> {
    type Row = Opened<S::Row>;

    async fn begin(&mut self) -> Result<(), StoreError> {
        if let Some(ring) = self.ring.as_ref().filter(|ring| !ring.can_seal()) {
            ring.take_up(&mut self.inner).await?;
        }
        self.inner.begin().await
    }

    async fn commit(&mut self) -> Result<(), CommitError> {
        self.inner.commit().await
    }

    async fn rollback(&mut self) {
        self.inner.rollback().await;
    }

    async fn outcome(&mut self) -> Result<bool, StoreError> {
        self.inner.outcome().await
    }

    async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Self::Row>, StoreError> {
        let Some(ring) = &self.ring else { return Ok(plain(self.inner.rows(action, text, args).await?)) };
        let rows = match args {
            Args::Values(values) => {
                let values = ring.seal_values(text, values)?;
                self.inner.rows(action, text, Args::Values(&values)).await?
            }
            Args::Rows(mut columns, values) => {
                ring.seal_columns(text, &mut columns)?;
                self.inner.rows(action, text, Args::Rows(columns, values)).await?
            }
        };
        if ring.lacks(text, &rows) {
            let new = self.inner.rows("read data keys", &sql::SELECT_DATA_KEYS, Args::Values(&[])).await?;
            ring.learn_rows(&new)?;
        }
        Ok(ring.open_rows(text, rows))
    }

    async fn look(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Self::Row>, StoreError> {
        match &self.ring {
            Some(_) => self.rows(action, text, args).await,
            None => Ok(plain(self.inner.look(action, text, args).await?)),
        }
    }

    async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        let Some(ring) = &self.ring else { return self.inner.execute(action, text, args).await };
        match args {
            Args::Values(values) => {
                let values = ring.seal_values(text, values)?;
                self.inner.execute(action, text, Args::Values(&values)).await
            }
            Args::Rows(mut columns, values) => {
                ring.seal_columns(text, &mut columns)?;
                self.inner.execute(action, text, Args::Rows(columns, values)).await
            }
        }
    }

    async fn write(&mut self, mut writes: Vec<Write>) -> Result<(), StoreError> {
        if let Some(ring) = &self.ring {
            for write in &mut writes {
                ring.seal_columns(write.text, &mut write.rows)?;
            }
        }
        self.inner.write(writes).await
    }
}

impl<S: Alone> Alone for Sealing<S> {
    async fn rows_alone(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Self::Row>, CommitError> {
        // Such statements make rows of their own, which nobody would seal: an encrypted store does not use them.
        Ok(plain(self.inner.rows_alone(action, text, args).await?))
    }
}

impl<R: Reader> Reader for Sealing<R> {
    type Row = Opened<R::Row>;

    fn seals(&self) -> bool {
        self.ring.is_some()
    }

    async fn read(
        &self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Self::Row>, StoreError> {
        let rows = self.inner.read(action, text, args).await?;
        let Some(ring) = &self.ring else { return Ok(plain(rows)) };
        if ring.lacks(text, &rows) {
            let new = self.inner.read("read data keys", &sql::SELECT_DATA_KEYS, Args::Values(&[])).await?;
            ring.learn_rows(&new)?;
        }
        Ok(ring.open_rows(text, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_have_one_key() {
        let key =
            |parts: &[&str]| row_key(parts.iter().map(|part| Cow::Borrowed(*part)).collect()).into_owned();
        assert_eq!(key(&["17"]), "17");
        assert_ne!(key(&["a/1:b", "c"]), key(&["a", "b/1:c"]));
        assert_ne!(key(&["", "ab"]), key(&["a", "b"]));
    }
}
