//! Many rows for one statement: SQLite takes them as a JSON list of rows, PostgreSQL as one array per column.

use crate::StoreError;
use std::borrow::Cow;
use turnstone_domain::{JobId, Timestamp};

/// The values of one column.
pub(crate) enum Column {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'static, str>>>),
}

/// Rows by column.
pub(crate) struct Columns {
    pub columns: Vec<Column>,
    pub rows: usize,
}

impl Columns {
    /// Takes rows apart.
    pub(crate) fn of<R: BulkRow>(rows: Vec<R>) -> Self {
        let count = rows.len();
        let mut columns = R::columns(count);
        for row in rows {
            row.put(&mut columns);
        }
        Self { columns, rows: count }
    }

    /// The rows as a JSON list of lists.
    pub(crate) fn to_json(&self) -> Result<String, StoreError> {
        let unencodable = |error: serde_json::Error| StoreError::Database {
            action: "encode a batch",
            message: error.to_string(),
        };
        let mut out = Vec::with_capacity(self.rows * self.columns.len() * 8);
        out.push(b'[');
        for row in 0..self.rows {
            out.extend_from_slice(if row == 0 { b"[" } else { b",[" });
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                match column {
                    Column::Ints(values) => serde_json::to_writer(&mut out, &values[row]),
                    Column::Texts(values) => serde_json::to_writer(&mut out, &values[row]),
                }
                .map_err(unencodable)?;
            }
            out.push(b']');
        }
        out.push(b']');
        String::from_utf8(out)
            .map_err(|e| StoreError::Database { action: "encode a batch", message: e.to_string() })
    }
}

/// A value of a row.
pub(crate) trait Cell {
    fn column(capacity: usize) -> Column;
    fn put(self, column: &mut Column);
}

macro_rules! cells {
    ($($type:ty => $kind:ident, |$value:ident| $cell:expr;)+) => {
        $(impl Cell for $type {
            fn column(capacity: usize) -> Column {
                Column::$kind(Vec::with_capacity(capacity))
            }

            fn put(self, column: &mut Column) {
                let $value = self;
                if let Column::$kind(values) = column {
                    values.push($cell);
                }
            }
        })+
    };
}

cells! {
    i64 => Ints, |v| Some(v);
    Option<i64> => Ints, |v| v;
    Timestamp => Ints, |v| Some(v.0);
    Option<Timestamp> => Ints, |v| v.map(|t| t.0);
    String => Texts, |v| Some(Cow::Owned(v));
    Option<String> => Texts, |v| v.map(Cow::Owned);
    &'static str => Texts, |v| Some(Cow::Borrowed(v));
    JobId => Texts, |v| Some(Cow::Owned(v.0));
}

/// A row: a tuple of cells, in the order of the statement's columns.
pub(crate) trait BulkRow {
    fn columns(capacity: usize) -> Vec<Column>;
    fn put(self, columns: &mut [Column]);
}

macro_rules! bulk_rows {
    ($(($($cell:ident $at:tt),+))+) => {
        $(impl<$($cell: Cell),+> BulkRow for ($($cell,)+) {
            fn columns(capacity: usize) -> Vec<Column> {
                vec![$($cell::column(capacity)),+]
            }

            fn put(self, columns: &mut [Column]) {
                $(self.$at.put(&mut columns[$at]);)+
            }
        })+
    };
}

bulk_rows! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18, T 19)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, R 17, S 18, T 19, U 20, V 21, W 22, X 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_json_list_of_lists() {
        let columns = Columns::of(vec![(1_i64, "a\"b".to_owned(), None), (2, "ü".to_owned(), Some(3_i64))]);
        assert_eq!(columns.to_json().unwrap(), r#"[[1,"a\"b",null],[2,"ü",3]]"#);
        assert_eq!(Columns::of(Vec::<(i64,)>::new()).to_json().unwrap(), "[]");
    }
}
