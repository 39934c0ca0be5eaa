//! Rows as parameters of a statement that writes: all numbers in one array, row after row, and each column of texts
//! in one of its own.
//!
//! PostgreSQL needs about half a microsecond for each value that `unnest` makes part of a row. It finds a number by
//! its place in an array in a tenth of that time, if no number of the array is NULL: [`NULL`] replaces it. A text
//! is found by its place only by passing those before it, so texts stay with `unnest`.

use crate::engine::columns::{Column, Columns};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces NULL among the numbers of rows. No column has such a number.
const NULL: i64 = i64::MIN;

/// Parameters of a statement, in their order.
pub(super) enum Parameter {
    /// The numbers of all rows.
    Numbers(Vec<i64>),
    /// A column.
    Column(Column),
}

/// The columns with numbers of jobs that a push writes.
const PLACED: &[&str] = &["seq", "job_seq", "stream", "engagement_seq", "budget_seq"];

/// How many columns of numbers share an array: none if there is only one, unless it is one of places.
fn shared(rows: &Columns) -> usize {
    let numbers = rows.columns.iter().filter(|column| matches!(column, Column::Ints(_))).count();
    if numbers > 1 || rows.placed { numbers } else { 0 }
}

/// Returns how many parameters the rows take.
pub(super) fn count(rows: &Columns) -> usize {
    let shared = shared(rows);
    rows.columns.len() - shared + usize::from(shared > 0)
}

/// Returns the statement for rows that come as these parameters; `text` takes an array per column.
pub(super) fn text<'a>(text: &'a str, rows: &Columns) -> Cow<'a, str> {
    let shared = shared(rows);
    if shared == 0 {
        return Cow::Borrowed(text);
    }
    let (mut values, mut names, mut arrays) = (String::new(), String::new(), String::new());
    let (mut number, mut array) = (0, 1);
    for (at, column) in rows.columns.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        match column {
            Column::Ints(_) => {
                number += 1;
                let value = format!("nullif($1[p.n * {shared} - {}], '{NULL}'::bigint)", shared - number);
                let is_placed = rows.placed && PLACED.contains(&rows.names[at]);
                let _ = match is_placed {
                    // The first statement of those that are joined takes the numbers.
                    true => write!(values, "{comma}(SELECT numbers FROM w0)[{value}]"),
                    false => write!(values, "{comma}{value}"),
                };
            }
            Column::Texts(_) => {
                array += 1;
                let _ = write!(values, "{comma}p.t{array}");
                let _ = write!(names, "t{array}, ");
                let _ = write!(arrays, "{}${array}", if array == 2 { "" } else { ", " });
            }
        }
    }
    let from = match array {
        1 => format!("generate_series(1, cardinality($1) / {shared}) AS p (n)"),
        _ => format!("unnest({arrays}) WITH ORDINALITY AS p ({names}n)"),
    };
    let each = (1..=rows.columns.len()).map(|at| format!("${at}")).collect::<Vec<_>>().join(", ");
    Cow::Owned(text.replace(&format!("unnest({each})"), &format!("(SELECT {values} FROM {from})")))
}

/// Takes the parameters out of the rows.
pub(super) fn parameters(rows: &mut Columns) -> Vec<Parameter> {
    let (shared, count) = (shared(rows), rows.rows);
    let columns = std::mem::take(&mut rows.columns);
    if shared == 0 {
        return columns.into_iter().map(Parameter::Column).collect();
    }
    let mut numbers = vec![NULL; shared * count];
    let mut parameters = Vec::with_capacity(columns.len() - shared + 1);
    let mut place = 0;
    for column in columns {
        match column {
            Column::Ints(values) => {
                for (row, value) in values.into_iter().enumerate() {
                    numbers[row * shared + place] = value.unwrap_or(NULL);
                }
                place += 1;
            }
            texts @ Column::Texts(_) => parameters.push(Parameter::Column(texts)),
        }
    }
    parameters.insert(0, Parameter::Numbers(numbers));
    parameters
}

#[cfg(test)]
mod tests {
    use super::{Parameter, count, parameters, text};
    use crate::engine::columns::{Column, Columns};

    fn rows(columns: Vec<Column>, rows: usize) -> Columns {
        Columns { names: [].as_slice().into(), columns, rows, placed: false }
    }

    #[test]
    fn numbers_share_an_array() {
        let texts = Column::Texts(vec![Some("a".into()), Some("b".into())]);
        let ints = Column::Ints(vec![Some(1), Some(2)]);
        let mut rows = rows(vec![ints, texts, Column::Ints(vec![None, Some(3)])], 2);
        assert_eq!(count(&rows), 2);
        assert_eq!(
            text("UPDATE t SET b = $4 FROM unnest($1, $2, $3) AS r (a, b, c)", &rows),
            "UPDATE t SET b = $4 FROM (SELECT nullif($1[p.n * 2 - 1], '-9223372036854775808'::bigint), p.t2, \
             nullif($1[p.n * 2 - 0], '-9223372036854775808'::bigint) FROM unnest($2) WITH ORDINALITY AS p (t2, n)) AS r (a, b, c)"
        );
        let parameters = parameters(&mut rows);
        assert!(
            matches!(&parameters[..], [Parameter::Numbers(all), Parameter::Column(_)] if *all == [1, i64::MIN, 2, 3])
        );
    }

    #[test]
    fn rows_of_numbers_alone_are_counted_and_a_single_column_stays() {
        let both = rows(vec![Column::Ints(vec![Some(1)]), Column::Ints(vec![Some(2)])], 1);
        assert!(
            text("unnest($1, $2)", &both).contains("FROM generate_series(1, cardinality($1) / 2) AS p (n)")
        );
        let rows = rows(vec![Column::Ints(vec![Some(1)]), Column::Texts(vec![Some("a".into())])], 1);
        assert_eq!((text("unnest($1, $2)", &rows).as_ref(), count(&rows)), ("unnest($1, $2)", 2));
    }
}
