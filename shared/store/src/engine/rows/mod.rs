//! Rows: each is declared once, with [`declare!`](declare!), and the declaration gives its struct, how it is read and
//! written, and which of its values are sealed.
//!
//! A declaration names columns as the migrations do. A statement with `{rows: …}` picks the columns that it names, in its
//! own order. Where a declaration names its table, the statement that inserts it is derived: see [`Stored`].

mod access;
mod declare;
mod engagements;
mod fleet;
mod jobs;
mod tools;
mod values;

pub(crate) use access::*;
pub(crate) use engagements::*;
pub(crate) use fleet::*;
pub(crate) use jobs::*;
pub(crate) use tools::*;
pub(crate) use values::{FromField, Put};

use super::columns::{Column, ColumnKind};
use crate::StoreError;
use crate::sql::Text;
use serde::de::DeserializeOwned;
use std::sync::LazyLock;

pub(crate) use declare::{declare, stored};

/// A row whose values this version does not understand.
#[derive(Clone, Debug)]
pub(crate) struct Inconsistency {
    /// Empty where the row is joined of several tables.
    table: &'static str,
    column: String,
    /// The key of the row.
    key: String,
    message: String,
}

impl Inconsistency {
    /// Names the row, unless it is named already.
    pub(super) fn of(mut self, table: &Table, row: &impl Fields) -> Self {
        if self.table.is_empty() {
            let value = |column: &&str| match row.int(column) {
                Ok(Some(number)) => Some(number.to_string()),
                _ => row.text(column).ok().flatten().map(str::to_owned),
            };
            self.table = table.name;
            self.key = table.key.iter().filter_map(value).collect::<Vec<_>>().join("/");
        }
        self
    }

    /// Returns why the column cannot be read.
    pub(super) fn into_reason(self) -> String {
        self.message
    }
}

impl From<Inconsistency> for StoreError {
    fn from(wrong: Inconsistency) -> Self {
        let Inconsistency { table, column, key, message } = wrong;
        let column = match table {
            "" => column,
            _ => format!("{column} of {table} {key}"),
        };
        Self::Unreadable { column, message }
    }
}

pub(super) fn wrong(column: &str, message: impl ToString) -> Inconsistency {
    Inconsistency { table: "", column: column.to_owned(), key: String::new(), message: message.to_string() }
}

/// A row of a database, by column.
pub(crate) trait Fields {
    /// A number.
    fn int(&self, column: &str) -> Result<Option<i64>, String>;
    /// A text.
    fn text(&self, column: &str) -> Result<Option<&str>, String>;
}

/// A row of which only the columns whose names begin so are looked at.
pub(super) struct Prefixed<'r, R> {
    pub row: &'r R,
    pub prefix: &'static str,
}

/// PostgreSQL's longest name of a column, in bytes.
const LONGEST_NAME: usize = 63;

/// Calls `read` with the whole name of a column, which is made without an allocation.
fn whole<T>(prefix: &str, column: &str, read: impl FnOnce(&str) -> T) -> T {
    let mut name = [0; LONGEST_NAME];
    let length = prefix.len() + column.len();
    match name.get_mut(..length) {
        Some(name) => {
            name[..prefix.len()].copy_from_slice(prefix.as_bytes());
            name[prefix.len()..].copy_from_slice(column.as_bytes());
            read(std::str::from_utf8(name).unwrap_or_default())
        }
        None => read(&[prefix, column].concat()),
    }
}

impl<R: Fields> Fields for Prefixed<'_, R> {
    fn int(&self, column: &str) -> Result<Option<i64>, String> {
        whole(self.prefix, column, |name| self.row.int(name))
    }

    fn text(&self, column: &str) -> Result<Option<&str>, String> {
        whole(self.prefix, column, |name| self.row.text(name))
    }
}

/// Returns the value of a column; an `Option` for one that may be NULL.
pub(crate) fn get<'r, T: FromField<'r>>(row: &'r impl Fields, column: &str) -> Result<T, Inconsistency> {
    T::from_field(row, column).map_err(|e| wrong(column, e))
}

/// Reads a declared row; what cannot be read is named by table, row and column.
pub(super) fn decode<T: Stored>(row: &impl Fields) -> Result<T, Inconsistency> {
    T::decode(row)
}

/// Returns the value of a column that holds JSON.
pub(super) fn json<T: DeserializeOwned>(row: &impl Fields, column: &str) -> Result<T, Inconsistency> {
    serde_json::from_str(get::<&str>(row, column)?).map_err(|e| wrong(column, e))
}

/// As [`json`], for a column that may be NULL.
pub(super) fn json_or_none<T: DeserializeOwned>(
    row: &impl Fields,
    column: &str,
) -> Result<Option<T>, Inconsistency> {
    let text: Option<&str> = get(row, column)?;
    text.map(|text| serde_json::from_str(text).map_err(|e| wrong(column, e))).transpose()
}

/// A row that can be written: one that is declared, or a single value.
pub(crate) trait Batch: Sized {
    /// The names of its columns, each with what it holds; `None` for a field that is no column.
    const COLUMNS: &'static [(&'static str, Option<ColumnKind>)];

    /// Adds its values to columns: field number `i` to column number `places[i]`.
    fn put(self, columns: &mut [Column], places: &[Option<usize>]) -> Result<(), StoreError>;

    /// As [`Batch::put`], for a row that is kept.
    fn put_copy(&self, columns: &mut [Column], places: &[Option<usize>]) -> Result<(), StoreError>;
}

/// A row that is declared with [`declare!`](declare!).
pub(crate) trait DeclaredRow: Batch {
    /// Reads it.
    ///
    /// # Errors
    /// Names the column that cannot be read.
    fn read<R: Fields>(row: &R) -> Result<Self, Inconsistency>;
}

/// A row whose declaration names its table.
pub(crate) trait Stored: DeclaredRow {
    /// Its table.
    fn table() -> &'static Table;

    /// As [`DeclaredRow::read`]; an error names the table and the row as well.
    fn decode<R: Fields>(row: &R) -> Result<Self, Inconsistency> {
        Self::read(row).map_err(|wrong| wrong.of(Self::table(), row))
    }
}

/// A row that is inserted as it is declared.
pub(crate) trait Inserted: Stored {}

/// The declaration of a table.
pub(crate) struct Table {
    pub name: &'static str,
    /// The columns of the key.
    pub key: &'static [&'static str],
    /// Those that are sealed.
    pub sealed: &'static [&'static str],
    /// True if its rows are inserted as they are declared.
    #[cfg(test)]
    pub is_inserted: bool,
    pub inserts: LazyLock<Inserts>,
}

/// The statements that insert the rows of a declaration.
pub(crate) struct Inserts {
    /// Fails when a row is there already.
    pub new: Text,
    /// Leaves rows alone that are there already.
    pub missing: Text,
    /// Replaces rows that are there already.
    pub over: Text,
}

impl Inserts {
    pub(super) fn of<R: Batch>(table: &str, key: &[&str]) -> Self {
        let columns = R::COLUMNS.iter().filter(|(_, kind)| kind.is_some()).map(|(name, _)| *name);
        let columns: &'static [&'static str] = columns.collect::<Vec<_>>().leak();
        let set = columns.iter().filter(|column| !key.contains(column));
        let key = key.join(", ");
        let set: Vec<String> = set.map(|column| format!("{column} = excluded.{column}")).collect();
        // A row that is nothing but its key is the same row.
        let over =
            if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", set.join(", ")) };
        Self {
            new: Text::insert(table, columns, ""),
            missing: Text::insert(table, columns, &format!("\nON CONFLICT ({key}) DO NOTHING")),
            over: Text::insert(table, columns, &format!("\nON CONFLICT ({key}) DO {over}")),
        }
    }
}
