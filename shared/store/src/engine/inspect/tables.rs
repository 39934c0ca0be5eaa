//! The tables of a database as its own catalog describes them, and the statements that read them page by page.

use super::super::rows::{Fields as _, Inconsistency, get};
use super::super::session::{Arg, Args, Reader, Row};
use super::super::statement::decode_all;
use crate::sql::{self, Text};
use crate::{StoreError, cipher};

/// A table.
pub(super) struct Table {
    pub name: String,
    /// Its columns, each with whether it holds texts.
    pub columns: Vec<(String, bool)>,
    /// The columns of its primary key, in their order.
    pub key: Vec<String>,
}

/// A column of the catalog.
struct Column {
    table: String,
    name: String,
    is_text: bool,
    key_place: i64,
}

/// Reads the catalog.
pub(super) async fn all(reader: &Reader) -> Result<Vec<Table>, StoreError> {
    let rows = reader.read("read the catalog", &sql::SELECT_COLUMNS_OF_TABLES, Args::Values(&[])).await?;
    let columns = decode_all(&rows, |row: &Row| -> Result<Column, Inconsistency> {
        Ok(Column {
            table: get(row, "table_name")?,
            name: get(row, "column_name")?,
            is_text: get(row, "is_text")?,
            key_place: get(row, "key_place")?,
        })
    })?;
    let mut tables: Vec<(Table, Vec<(i64, String)>)> = Vec::new();
    for Column { table, name, is_text, key_place } in columns {
        if tables.last().is_none_or(|(last, _)| last.name != table) {
            tables.push((Table { name: table, columns: Vec::new(), key: Vec::new() }, Vec::new()));
        }
        let Some((table, key)) = tables.last_mut() else { continue };
        key.extend((key_place > 0).then(|| (key_place, name.clone())));
        table.columns.push((name, is_text));
    }
    let whole = |(table, mut key): (Table, Vec<(i64, String)>)| {
        key.sort();
        Table { key: key.into_iter().map(|(_, column)| column).collect(), ..table }
    };
    Ok(tables.into_iter().map(whole).filter(|table| !table.key.is_empty()).collect())
}

/// The place of a row in the order of its table.
pub(super) enum Part {
    Int(i64),
    Text(String),
}

impl Table {
    /// Returns the statement that reads rows in the order of their key; `after` a row, or from the first one.
    fn text(&self, after: bool) -> Text {
        let key = self.key.join(", ");
        let mut names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        // The values of these rows are sealed for the run's id, which is that of its engagement.
        let run = "(SELECT e.id FROM engagements AS e WHERE e.seq = run_events.engagement_seq) AS run_id";
        names.extend((self.name == "run_events").then_some(run));
        let (names, limit) = (names.join(", "), if after { self.key.len() + 1 } else { 1 });
        let marks: Vec<String> = (1..=self.key.len()).map(|at| format!("${at}")).collect();
        let later = if after { format!(" WHERE ({key}) > ({})", marks.join(", ")) } else { String::new() };
        Text::read(&format!("SELECT {names} FROM {}{later} ORDER BY {key} LIMIT ${limit}", self.name))
    }

    /// Returns the statements that read its pages: the first one, and those after a row.
    pub(super) fn pages(&self) -> Pages {
        let sealed = cipher::sealed_of(&self.name).into_iter().collect();
        Pages { first: self.text(false), later: self.text(true), sealed }
    }

    /// Returns the key of a row.
    ///
    /// # Errors
    /// Says which column of it cannot be read: nothing behind this row can be.
    pub(super) fn key_of(&self, row: &Row) -> Result<Vec<Part>, String> {
        let is_text = |column: &str| self.columns.iter().any(|(name, is_text)| name == column && *is_text);
        let part = |column: &String| {
            let part = match is_text(column) {
                true => row.text(column).map(|text| text.map(|text| Part::Text(text.to_owned()))),
                false => row.int(column).map(|number| number.map(Part::Int)),
            };
            part.and_then(|part| part.ok_or_else(|| "it is NULL".to_owned()))
                .map_err(|why| format!("{column} of the primary key: {why}"))
        };
        self.key.iter().map(part).collect()
    }
}

/// The statements that read a table.
pub(super) struct Pages {
    first: Text,
    later: Text,
    sealed: Vec<cipher::Found>,
}

impl Pages {
    /// Reads at most `limit` rows after the row with this key.
    pub(super) async fn read(
        &self,
        reader: &Reader,
        after: Option<&[Part]>,
        limit: i64,
    ) -> Result<Vec<Row>, StoreError> {
        let mut values: Vec<Arg<'_>> = after
            .unwrap_or_default()
            .iter()
            .map(|part| match part {
                Part::Int(number) => (*number).into(),
                Part::Text(text) => text.as_str().into(),
            })
            .collect();
        values.push(limit.into());
        let text = if after.is_some() { &self.later } else { &self.first };
        reader.read_sealed("read a table", text, Args::Values(&values), &self.sealed).await
    }
}
