//! Sealing the arguments of statements, and opening what is sealed in their rows.

use super::key::{Place, Sealed};
use super::keyring::{Keyring, KnownKeys};
use crate::StoreError;
use crate::engine::columns::{Column, Columns};
use crate::engine::rows::{Fields, stored};
use crate::engine::session::Row;
use crate::sql::{self, Text};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ptr;
use std::sync::LazyLock;

/// A table with sealed columns, as its declarations say.
pub(super) struct Sealing {
    pub key: &'static [&'static str],
    pub columns: BTreeSet<&'static str>,
}

/// The tables with sealed columns.
pub(super) static SEALED: LazyLock<BTreeMap<&'static str, Sealing>> = LazyLock::new(|| {
    let mut tables = BTreeMap::new();
    for table in stored().filter(|table| !table.sealed.is_empty()) {
        let sealing = || Sealing { key: table.key, columns: BTreeSet::new() };
        tables.entry(table.name).or_insert_with(sealing).columns.extend(table.sealed);
    }
    tables
});

/// The sealed columns that each statement may return, by the address of its text: those of the tables that it names.
static FOUND: LazyLock<HashMap<usize, Vec<Found>>> = LazyLock::new(|| {
    let all = sql::ALL.iter().flat_map(|(_, texts)| texts.iter());
    all.map(|text| (ptr::from_ref(text).addr(), of_statement(text))).collect()
});

/// Sealed columns of one table that a statement may return.
pub(crate) struct Found {
    pub table: &'static str,
    pub key: &'static [&'static str],
    pub columns: Vec<&'static str>,
}

/// The words of a statement, without its comments.
pub(super) fn words(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter(|line| !line.starts_with("--"))
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .collect()
}

pub(super) fn of_statement(text: &Text) -> Vec<Found> {
    let words = words(text.sqlite);
    let named = SEALED.iter().filter(|(table, _)| words.contains(*table));
    named
        .map(|(table, sealing)| {
            let columns = sealing.columns.iter().copied().filter(|column| words.contains(column)).collect();
            Found { table, key: sealing.key, columns }
        })
        .filter(|found| !found.columns.is_empty())
        .collect()
}

/// Returns what is sealed in whole rows of a table.
pub(crate) fn of_table(table: &str) -> Option<Found> {
    let (table, sealing) = SEALED.get_key_value(table)?;
    Some(Found { table, key: sealing.key, columns: sealing.columns.iter().copied().collect() })
}

/// The table that a statement writes to, if it has sealed columns.
pub(super) fn written(text: &Text) -> Option<(&'static str, &'static Sealing)> {
    let line = text.sqlite.lines().find(|line| !line.starts_with("--"))?;
    let line = line.strip_prefix("INSERT INTO ").or_else(|| line.strip_prefix("UPDATE "))?;
    SEALED.get_key_value(line.split_whitespace().next()?).map(|(table, sealing)| (*table, sealing))
}

/// Returns the sealed columns in the rows that a statement returns.
pub(crate) fn found(text: &Text) -> &'static [Found] {
    FOUND.get(&ptr::from_ref(text).addr()).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the key of a row as one text.
fn row_key<'a>(mut parts: Vec<Cow<'a, str>>) -> Cow<'a, str> {
    match parts.len() {
        1 => parts.swap_remove(0),
        // Lengths before texts, so that no two lists make one key.
        _ => parts.iter().map(|part| format!("{}:{part}", part.len())).collect::<Vec<_>>().join("/").into(),
    }
}

/// Returns true for a text without content, such as `{}`, which is stored in the clear.
fn is_empty(text: &str) -> bool {
    matches!(text, "{}" | "[]")
}

impl Keyring {
    /// Seals the columns of a statement.
    pub(crate) fn seal_columns(&self, text: &Text, columns: &mut Columns) -> Result<(), StoreError> {
        let Some((table, sealing)) = written(text) else { return Ok(()) };
        let place = |name: &str| columns.names.iter().position(|column| *column == name);
        let sealed: Vec<_> = sealing.columns.iter().filter_map(|name| Some((place(name)?, *name))).collect();
        if sealed.is_empty() {
            return Ok(());
        }
        let incomplete = || StoreError::Database {
            action: "seal a value",
            message: format!("a row of {table} is written without its key"),
        };
        let key: Option<Vec<usize>> = sealing.key.iter().map(|name| place(name)).collect();
        let key = key.ok_or_else(incomplete)?;
        let cell = |columns: &Columns, at: usize, row: usize| match columns.columns.get(at) {
            Some(Column::Ints(values)) => values.get(row).copied().flatten().map(|n| n.to_string()),
            Some(Column::Texts(values)) => values.get(row).cloned().flatten().map(Cow::into_owned),
            None => None,
        };
        for row in 0..columns.rows {
            let parts = key.iter().map(|at| cell(columns, *at, row).map(Cow::Owned));
            let key = row_key(parts.collect::<Option<_>>().ok_or_else(incomplete)?);
            for (at, column) in &sealed {
                let place = Place { table, column, row: &key };
                if let Some(Column::Texts(values)) = columns.columns.get_mut(*at)
                    && let Some(Some(value)) = values.get_mut(row)
                    && !is_empty(value)
                {
                    *value = Cow::Owned(self.seal(value, place)?);
                }
            }
        }
        Ok(())
    }

    /// Returns true when rows hold a value that is sealed with a data key which is not known yet.
    pub(crate) fn lacks(&self, found: &[Found], rows: &[Row]) -> bool {
        let known = self.known();
        let is_unknown = |row: &Row, column: &str| {
            let sealed = row.text(column).ok().flatten().and_then(Sealed::read);
            sealed.is_some_and(|sealed| known.find(sealed.key).is_none())
        };
        let mut found = found.iter();
        found.any(|found| rows.iter().any(|row| found.columns.iter().any(|column| is_unknown(row, column))))
    }

    /// Opens what is sealed in rows.
    pub(crate) fn open_rows(&self, found: &[Found], rows: &mut [Row]) {
        let known = self.known();
        for row in rows {
            found.iter().for_each(|found| open_row(&known, found, row));
        }
    }
}

fn open_row(known: &KnownKeys, found: &Found, row: &mut Row) {
    let part = |row: &Row, column: &str| match row.int(column) {
        Ok(number) => number.map(|number| number.to_string()),
        Err(_) => row.text(column).ok().flatten().map(str::to_owned),
    };
    let mut key = None;
    for &column in &found.columns {
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

fn open(known: &KnownKeys, sealed: Sealed<'_>, place: Place<'_>) -> Result<String, String> {
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
