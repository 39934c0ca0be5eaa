//! Rows as parameters of a statement that writes: all numbers in one array, row after row, and each column of texts
//! in one of its own.
//!
//! PostgreSQL needs about half a microsecond for each value that `unnest` makes part of a row. It finds a number by
//! its place in an array in a tenth of that time, if no number of the array is NULL: [`NULL`] replaces it. A text
//! is found by its place only by passing those before it, so texts stay with `unnest`. A column in which all rows have
//! the same text, or none, is no array: that text comes once, in an array with those of the other columns. The first
//! column of texts stays an array, because it numbers the rows. `generate_series` would number them as well, but
//! PostgreSQL expects a thousand rows of it and ten of `unnest`, and for a thousand it reads a whole index.

use crate::engine::columns::{Column, Columns};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces NULL among the numbers of rows. No column has such a number.
const NULL: i64 = i64::MIN;

/// Parameters of a statement, in their order.
pub(super) enum Parameter {
    /// The numbers of all rows.
    Numbers(Vec<i64>),
    /// For each column of texts but the first, the text that all rows have.
    Same(Vec<Option<Cow<'static, str>>>),
    /// A column of texts; `None` if all rows have the same.
    Texts(Option<Vec<Option<Cow<'static, str>>>>),
    /// A column that is a parameter as it is.
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
    match (shared(rows), rows.columns.len()) {
        (0, all) => all,
        (shared, all) if all - shared < 2 => 1 + all - shared,
        (shared, all) => 2 + all - shared,
    }
}

/// Returns the statement for rows that come as these parameters; `text` takes an array per column.
pub(super) fn text<'a>(text: &'a str, rows: &Columns) -> Cow<'a, str> {
    let shared = shared(rows);
    if shared == 0 {
        return Cow::Borrowed(text);
    }
    let (mut values, mut names, mut arrays) = (String::new(), String::new(), String::new());
    let (mut number, mut texts) = (0, 0);
    let first = 2 + usize::from(rows.columns.len() - shared > 1);
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
                let _ = match texts {
                    0 => write!(values, "{comma}p.t0"),
                    _ => write!(values, "{comma}coalesce(p.t{texts}, $2[{texts}])"),
                };
                let _ = write!(names, "t{texts}, ");
                let _ = write!(arrays, "{}${}", if texts == 0 { "" } else { ", " }, first + texts);
                texts += 1;
            }
        }
    }
    let from = match texts {
        0 => format!("generate_series(1, cardinality($1) / {shared}) AS p (n)"),
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
    let (mut numbers, mut place) = (vec![NULL; shared * count], 0);
    let (mut same, mut texts) = (Vec::new(), Vec::new());
    for column in columns {
        match column {
            Column::Ints(values) => {
                for (row, value) in values.into_iter().enumerate() {
                    numbers[row * shared + place] = value.unwrap_or(NULL);
                }
                place += 1;
            }
            Column::Texts(values) if texts.is_empty() => texts.push(Parameter::Texts(Some(values))),
            Column::Texts(mut values) => {
                let is_same = values.windows(2).all(|two| two[0] == two[1]);
                same.push(if is_same { values.pop().flatten() } else { None });
                texts.push(Parameter::Texts((!is_same).then_some(values)));
            }
        }
    }
    let same = (texts.len() > 1).then_some(Parameter::Same(same));
    std::iter::once(Parameter::Numbers(numbers)).chain(same).chain(texts).collect()
}

#[cfg(test)]
mod tests {
    use super::{Parameter, count, parameters, text};
    use crate::engine::columns::{Column, Columns};

    fn rows(columns: Vec<Column>, rows: usize) -> Columns {
        Columns { names: [].as_slice().into(), columns, rows, placed: false }
    }

    #[test]
    fn numbers_share_an_array_and_equal_texts_come_once() {
        let texts =
            |texts: [Option<&'static str>; 2]| Column::Texts(texts.map(|text| text.map(Into::into)).into());
        let (ints, same) = (Column::Ints(vec![Some(1), Some(2)]), texts([Some("b"), Some("b")]));
        let more = Column::Ints(vec![None, Some(3)]);
        let mut rows = rows(vec![ints, texts([Some("a"), None]), more, same, texts([None, Some("c")])], 2);
        assert_eq!(count(&rows), 5);
        assert_eq!(
            text("UPDATE t SET b = $6 FROM unnest($1, $2, $3, $4, $5) AS r (a, b, c, d, e)", &rows),
            "UPDATE t SET b = $6 FROM (SELECT nullif($1[p.n * 2 - 1], '-9223372036854775808'::bigint), p.t0, \
             nullif($1[p.n * 2 - 0], '-9223372036854775808'::bigint), coalesce(p.t1, $2[1]), \
             coalesce(p.t2, $2[2]) FROM unnest($3, $4, $5) WITH ORDINALITY AS p (t0, t1, t2, n)) \
             AS r (a, b, c, d, e)"
        );
        match &parameters(&mut rows)[..] {
            [
                Parameter::Numbers(numbers),
                Parameter::Same(same),
                Parameter::Texts(Some(first)),
                Parameter::Texts(None),
                Parameter::Texts(Some(last)),
            ] => {
                assert_eq!(*numbers, [1, i64::MIN, 2, 3]);
                assert_eq!(*same, [Some("b".into()), None]);
                assert_eq!((first[0].as_deref(), last[1].as_deref()), (Some("a"), Some("c")));
            }
            _ => panic!("other parameters"),
        }
    }

    #[test]
    fn one_column_of_texts_numbers_the_rows() {
        let columns = vec![Column::Ints(vec![Some(1)]), Column::Ints(vec![Some(2)])];
        let texts = Column::Texts(vec![Some("a".into())]);
        let mut rows = rows(columns.into_iter().chain([texts]).collect(), 1);
        assert_eq!(count(&rows), 2);
        let text = text("unnest($1, $2, $3)", &rows);
        assert!(text.contains("p.t0 FROM unnest($2) WITH ORDINALITY AS p (t0, n)"), "{text}");
        assert!(matches!(&parameters(&mut rows)[..], [Parameter::Numbers(_), Parameter::Texts(Some(_))]));
    }

    #[test]
    fn rows_of_numbers_alone_are_counted_and_a_single_column_stays() {
        let both = rows(vec![Column::Ints(vec![Some(1)]), Column::Ints(vec![Some(2)])], 1);
        assert!(
            text("unnest($1, $2)", &both).contains("FROM generate_series(1, cardinality($1) / 2) AS p (n)")
        );
        assert_eq!(count(&both), 1);
        let rows = rows(vec![Column::Ints(vec![Some(1)]), Column::Texts(vec![Some("a".into())])], 1);
        assert_eq!((text("unnest($1, $2)", &rows).as_ref(), count(&rows)), ("unnest($1, $2)", 2));
    }
}
