//! The rows of one job as they are stored, whether they can be read or not.

use super::super::rows::Fields as _;
use super::super::session::{Args, Reader, Row};
use crate::sql::{self, Text};
use crate::{StoreError, cipher};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::iter;
use turnstone_domain::JobId;

/// A row as it is stored: a number or a text by column. A value that cannot be read as either is an object with the reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RawRow {
    /// The table.
    pub table: &'static str,
    /// The values by column. Sealed ones are opened; one that cannot be opened is shown sealed, with the reason.
    pub columns: Map<String, Value>,
}

/// Reads the rows that belong to a job; none when it is not stored.
pub(crate) async fn rows_of_job(reader: &Reader, id: &JobId) -> Result<Vec<RawRow>, StoreError> {
    let mut found = Vec::new();
    for text in sql::SELECT_RAW_ROWS_OF_JOB.iter().chain(iter::once(&sql::SELECT_RAW_JOURNAL_OF_JOB)) {
        let table = table_of(text);
        let sealed: Vec<cipher::Found> = cipher::sealed_of(table).into_iter().collect();
        let values = [id.as_str().into()];
        let rows = reader.read_sealed("read raw rows", text, Args::Values(&values), &sealed).await?;
        found.extend(rows.iter().map(|row| RawRow { table, columns: columns(row) }));
        if found.is_empty() {
            return Ok(found);
        }
    }
    Ok(found)
}

/// Returns the table that a statement names with an alias.
fn table_of(text: &'static Text) -> &'static str {
    let lines = text.sqlite.lines().filter(|line| !line.starts_with("--"));
    let named = lines.filter_map(|line| line.split_once(" AS v").or_else(|| line.split_once(" AS r")));
    let last = named.map(|(before, _)| before.rsplit(' ').next().unwrap_or_default()).next_back();
    last.unwrap_or_default()
}

fn columns(row: &Row) -> Map<String, Value> {
    row.columns().into_iter().map(|column| (column.to_owned(), value(row, column))).collect()
}

fn value(row: &Row, column: &str) -> Value {
    match (row.int(column), row.text(column)) {
        (Ok(number), _) => json!(number),
        (_, Ok(text)) => json!(text),
        (_, Err(reason)) => json!({"unreadable": reason, "stored": row.stored(column)}),
    }
}
