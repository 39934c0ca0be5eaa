//! Tables: ruled and fitted to the window on a terminal, plain aligned columns everywhere else.

use super::text;
use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};
use serde::Serialize;
use serde_json::Value;
use turnstone_domain::Timestamp;

/// A column of a table.
pub struct Column<T> {
    /// Its heading.
    pub heading: &'static str,
    /// Returns the text of an item's cell.
    pub cell: fn(&T) -> String,
}

/// Returns a column that shows what `cell` makes of an item.
#[must_use]
pub const fn column<T>(heading: &'static str, cell: fn(&T) -> String) -> Column<T> {
    Column { heading, cell }
}

/// Returns the table as text, without a trailing line break.
#[must_use]
pub fn of<T>(items: &[T], columns: &[Column<T>], tty: bool) -> String {
    let rows = items.iter().map(|item| cells(item, columns));
    ruled(headings(columns), rows.collect(), tty)
}

/// Returns the headings of columns.
#[must_use]
pub fn headings<T>(columns: &[Column<T>]) -> Vec<&'static str> {
    columns.iter().map(|column| column.heading).collect()
}

/// Returns the cells of an item.
#[must_use]
pub fn cells<T>(item: &T, columns: &[Column<T>]) -> Vec<String> {
    columns.iter().map(|column| (column.cell)(item)).collect()
}

/// As [`of`], from the texts of the cells. Each is put on one line.
#[must_use]
pub fn ruled(headings: Vec<&str>, rows: Vec<Vec<String>>, tty: bool) -> String {
    let in_lines = |row: Vec<String>| row.iter().map(|cell| text::line(cell)).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(in_lines).collect();
    let mut table = Table::new();
    if tty
        && let Some(window) = table.width().map(usize::from)
        && least(&headings, &rows) > window
    {
        return records(&headings, &rows, window);
    }
    let least: Vec<usize> = (0..headings.len()).map(|at| longest(&headings, &rows, at)).collect();
    table.set_header(headings).add_rows(rows);
    if tty {
        let below_headings = LineStyle::none().fill('─').junction('─');
        table.load_style(TableStyle::new().header_separator(below_headings));
        table.set_content_arrangement(ContentArrangement::Dynamic);
    } else {
        table
            .load_style(TableStyle::new())
            .force_no_tty()
            .set_content_arrangement(ContentArrangement::Disabled);
    }
    for (column, least) in table.column_iter_mut().zip(least) {
        column.set_padding((0, 2));
        let least = u16::try_from(least + 2).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
    }
    // The first column is what people copy: it is never broken over two lines.
    if let Some(first) = table.column_mut(0) {
        first.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}

/// Returns the columns that the longest word of a column takes: a word is never broken over two lines.
fn longest(headings: &[&str], rows: &[Vec<String>], at: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(at)).map(String::as_str);
    let words = cells.chain(headings.get(at).copied()).flat_map(|cell| cell.split(' '));
    words.map(text::width).max().unwrap_or(0)
}

/// Returns the narrowest window that the table fits into. The first column is never broken at all.
fn least(headings: &[&str], rows: &[Vec<String>]) -> usize {
    let first = rows.iter().filter_map(|row| row.first()).map(|cell| text::width(cell)).max().unwrap_or(0);
    let others: usize = (1..headings.len()).map(|at| longest(headings, rows, at) + 2).sum();
    first.max(longest(headings, rows, 0)) + 2 + others
}

/// For a window that is too narrow for columns: each item on lines of its own, without empty fields.
fn records(headings: &[&str], rows: &[Vec<String>], window: usize) -> String {
    let record = |row: &Vec<String>| {
        let mut cells = headings.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let first = cells.next().map(|(_, cell)| cell.clone()).unwrap_or_default();
        let said: Vec<String> = cells.map(|(heading, cell)| format!("{heading} {cell}")).collect();
        let said = text::wrapped(&said.join(" · "), Some(window.saturating_sub(2)));
        std::iter::once(first)
            .chain(said.lines().map(|line| format!("  {line}")))
            .collect::<Vec<_>>()
            .join("\n")
    };
    rows.iter().map(record).collect::<Vec<_>>().join("\n")
}

/// Returns a scalar field as people write it; empty for an absent field.
#[must_use]
pub fn plain(value: &impl Serialize) -> String {
    match serde_json::to_value(value).unwrap_or_default() {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Returns a point in time, given as RFC 3339 or as milliseconds since the epoch, as RFC 3339 in UTC without fractions.
#[must_use]
pub fn time(value: &impl Serialize) -> String {
    let shown = plain(value);
    let time = shown.parse().map(Timestamp).ok().or_else(|| Timestamp::parse_rfc3339(&shown));
    let Some(time) = time else { return shown };
    let text = time.to_rfc3339();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: &[Column<[&str; 2]>] =
        &[column("ID", |item| plain(&item[0])), column("STATE", |item| plain(&item[1]))];

    #[test]
    fn a_pipe_gets_aligned_columns_without_rules() {
        let items = [["a", "active"], ["longer", "x\u{1b}[31m\ny"]];
        assert_eq!(of(&items, COLUMNS, false), "ID      STATE\na       active\nlonger  x y");
    }

    #[test]
    fn a_window_too_narrow_for_columns_gets_a_record_per_item() {
        let rows = vec![vec!["0190a7b2".to_owned(), "active".to_owned(), "two words".to_owned()]];
        let headings = ["ID", "STATE", "WHY"];
        assert_eq!(least(&headings, &rows), 8 + 2 + 6 + 2 + 5 + 2);
        assert_eq!(records(&headings, &rows, 20), "0190a7b2\n  STATE active · WHY\n  two words");
    }

    #[test]
    fn an_empty_list_still_shows_its_headings() {
        assert_eq!(of(&[], COLUMNS, false), "ID  STATE");
    }

    #[test]
    fn times_read_the_same_whether_numbers_or_words() {
        assert_eq!(time(&json!(0)), "1970-01-01T00:00:00Z");
        assert_eq!(time(&json!("2026-01-01T01:00:00.123+01:00")), "2026-01-01T00:00:00Z");
        assert_eq!((time(&json!("soon")), time(&json!(null))), ("soon".to_owned(), String::new()));
    }
}
