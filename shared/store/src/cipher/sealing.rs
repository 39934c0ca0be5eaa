//! Sealing the arguments of statements, and opening what is sealed in their rows.

use super::key::{Place, Sealed};
use super::keyring::{Keyring, Known};
use super::places::{FOUND, Found, KeyPart, WRITTEN, Written};
use crate::StoreError;
use crate::engine::columns::{Column, Columns};
use crate::engine::rows::Fields;
use crate::engine::session::{Arg, Row};
use crate::sql::Text;
use std::borrow::Cow;

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
    pub(crate) fn seal_columns(&self, text: &Text, columns: &mut Columns) -> Result<(), StoreError> {
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
    pub(crate) fn seal_values<'a>(
        &self,
        text: &Text,
        values: &[Arg<'a>],
    ) -> Result<Vec<Arg<'a>>, StoreError> {
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
    pub(crate) fn lacks(&self, text: &Text, rows: &[Row]) -> bool {
        let known = self.known();
        let is_unknown = |row: &Row, column: &str| {
            let sealed = row.text(column).ok().flatten().and_then(Sealed::read);
            sealed.is_some_and(|sealed| known.find(sealed.key).is_none())
        };
        found(text)
            .any(|found| rows.iter().any(|row| found.columns.iter().any(|column| is_unknown(row, column))))
    }

    /// Opens what is sealed in rows.
    pub(crate) fn open_rows(&self, text: &Text, rows: &mut [Row]) {
        let known = self.known();
        for row in rows {
            found(text).for_each(|found| open_row(&known, found, row));
        }
    }
}

fn open_row(known: &Known, found: &'static Found, row: &mut Row) {
    let part = |row: &Row, part: &KeyPart| match part {
        KeyPart::Int(column) => row.int(column).ok().flatten().map(|number| number.to_string()),
        KeyPart::Text(column) => row.text(column).ok().flatten().map(str::to_owned),
    };
    let mut key = None;
    for column in found.columns {
        let Some(sealed) = row.text(column).ok().flatten().and_then(Sealed::read) else { continue };
        let key = key.get_or_insert_with(|| {
            let parts = found.key.iter().map(|p| part(row, p).map_or(Cow::Borrowed("NULL"), Cow::Owned));
            row_key(parts.collect())
        });
        let place = Place { table: found.table, column, row: key };
        let opened = open(known, sealed, place);
        row.open(column, opened);
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
