//! Finds the rows that cannot be read: every table is read whole, page by page, and every value as the product reads it.
//!
//! The tables and their columns are those of the database's own catalog, so a new column is read as well. [`holds`] says which
//! of them hold more than any text.

mod holds;
mod raw;
mod tables;

pub use raw::RawRow;
pub(crate) use raw::rows_of_job;

use super::record_gaps;
use super::rows::{self, Fields as _, get};
use super::session::{Reader, Row};
use super::views::all;
use crate::StoreError;
use crate::sql::{self, Text};
use serde::Serialize;
use tables::{Part, Table};

/// The rows of a table's first page. What a row holds is not known yet.
const FIRST_PAGE: i64 = 16;
/// The most rows of a page.
const LARGEST_PAGE: i64 = 1_000;
/// A page whose texts have more bytes than this is followed by a smaller one.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// A value that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DamagedValue {
    /// The table.
    pub table: String,
    /// The row's primary key, with slashes between its parts.
    pub key: String,
    /// The id of what the row is, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The column.
    pub column: String,
    /// The reason.
    pub reason: String,
}

/// The extent of an inspection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Inspected {
    /// Tables that were read.
    pub tables: u64,
    /// Rows that were read.
    pub rows: u64,
    /// Values that cannot be read.
    pub damaged: u64,
}

/// Reads everything that is stored, and reports what cannot be read as soon as it is found.
///
/// # Errors
/// The database does not answer.
pub(crate) async fn inspect(
    reader: &Reader,
    report: &mut (dyn FnMut(DamagedValue) + Send),
) -> Result<Inspected, StoreError> {
    let mut seen = Inspected::default();
    for table in tables::all(reader).await? {
        seen.tables += 1;
        inspect_table(reader, &table, &mut seen, report).await?;
    }
    for (text, table, column, reason) in INCOMPLETE {
        incomplete(reader, text, &mut |key, id| {
            seen.damaged += 1;
            let (table, column) = ((*table).to_owned(), (*column).to_owned());
            report(DamagedValue { table, key, id: Some(id), column, reason: (*reason).to_owned() });
        })
        .await?;
    }
    record_gaps::of_all(reader, &mut |seq, id, gap| {
        seen.damaged += 1;
        let (table, column) = ("journal".to_owned(), "phase".to_owned());
        let (key, id, reason) = (seq.to_string(), Some(id.to_string()), gap.to_string());
        report(DamagedValue { table, key, id, column, reason });
    })
    .await?;
    Ok(seen)
}

/// Rows that lack what belongs to them: a statement, the table and the column that names it, and the reason.
static INCOMPLETE: &[(&Text, &str, &str, &str)] = &[
    (&sql::SELECT_JOBS_WITHOUT_ENVELOPE, "jobs", "seq", "it has no row in job_envelopes"),
    (&sql::SELECT_JOBS_WITHOUT_ENGAGEMENT, "jobs", "engagement_seq", "it has no row in engagements"),
    (
        &sql::SELECT_ENGAGEMENTS_WITHOUT_DEFINITION,
        "engagements",
        "digest",
        "it has no row in agent_definitions",
    ),
    (&sql::SELECT_ENGAGEMENTS_WITHOUT_TOTALS, "engagements", "seq", "it has no row in totals"),
];

async fn incomplete(
    reader: &Reader,
    text: &Text,
    report: &mut (dyn FnMut(String, String) + Send),
) -> Result<(), StoreError> {
    let mut after = i64::MIN;
    loop {
        let values = [after.into(), LARGEST_PAGE.into()];
        let read = |row: &Row| Ok((get::<i64>(row, "seq")?, get::<String>(row, "id").unwrap_or_default()));
        let found = all(reader, "look for incomplete rows", text, &values, read).await?;
        let Some((last, _)) = found.last() else { return Ok(()) };
        after = *last;
        found.into_iter().for_each(|(seq, id)| report(seq.to_string(), id));
    }
}

async fn inspect_table(
    reader: &Reader,
    table: &Table,
    seen: &mut Inspected,
    report: &mut (dyn FnMut(DamagedValue) + Send),
) -> Result<(), StoreError> {
    let pages = table.pages();
    let (mut after, mut limit): (Option<Vec<Part>>, i64) = (None, FIRST_PAGE);
    loop {
        let page = pages.read(reader, after.as_deref(), limit).await?;
        let mut bytes = 0;
        for row in &page {
            seen.rows += 1;
            for damaged in inspect_row(table, row, &mut bytes) {
                seen.damaged += 1;
                report(damaged);
            }
        }
        let is_last = page.len() < usize::try_from(limit).unwrap_or(usize::MAX);
        let Some(last) = page.last().filter(|_| !is_last) else { return Ok(()) };
        match table.key_of(last) {
            Ok(key) => after = Some(key),
            // Reported with its row; the order of the table ends here.
            Err(_) => return Ok(()),
        }
        limit = if bytes > PAGE_BYTES { (limit / 4).max(1) } else { (limit * 2).min(LARGEST_PAGE) };
    }
}

/// Returns the values of a row that cannot be read, and adds the length of its texts.
fn inspect_row(table: &Table, row: &Row, bytes: &mut usize) -> Vec<DamagedValue> {
    let shown = |column: &str| match row.int(column) {
        Ok(number) => number.map(|number| number.to_string()),
        Err(_) => row.text(column).ok().flatten().map(str::to_owned),
    };
    let damaged = |column: &str, reason: String| DamagedValue {
        table: table.name.clone(),
        key: table.key.iter().map(|part| shown(part).unwrap_or_default()).collect::<Vec<_>>().join("/"),
        id: table.columns.iter().any(|(name, _)| name == "id").then(|| shown("id")).flatten(),
        column: column.to_owned(),
        reason,
    };
    let held = holds::of_table(&table.name);
    let mut found = Vec::new();
    for (column, is_text) in &table.columns {
        let read = match is_text {
            true => row.text(column).map(|text| *bytes += text.map_or(0, str::len)),
            false => row.int(column).map(drop),
        };
        let holds = held.iter().find(|(name, _)| name == column).map(|(_, holds)| holds);
        let read = read.and_then(|()| holds.map_or(Ok(()), |holds| holds.check(row, column)));
        found.extend(read.err().map(|why| damaged(column, why)));
    }
    if found.is_empty() {
        match holds::contradiction(&table.name, row) {
            Ok(None) => {}
            Ok(Some((column, why))) => found.push(damaged(column, why)),
            Err(wrong) => found.push(damaged("", rows::Inconsistency::into_reason(wrong))),
        }
    }
    found
}
