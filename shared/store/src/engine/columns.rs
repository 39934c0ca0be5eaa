//! Many rows for one statement: SQLite takes them as a JSON list of rows, PostgreSQL as one array per column.

use super::rows::Batch;
use crate::StoreError;
use crate::sql::Text;
use std::borrow::Cow;

/// The type of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnKind {
    Ints,
    Texts,
}

/// The values of one column.
#[derive(Clone)]
pub(crate) enum Column {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'static, str>>>),
}

impl Column {
    /// Appends a number.
    pub(crate) fn int(&mut self, value: Option<i64>) {
        if let Self::Ints(values) = self {
            values.push(value);
        }
    }

    /// Appends a text.
    pub(crate) fn text(&mut self, value: Option<Cow<'static, str>>) {
        if let Self::Texts(values) = self {
            values.push(value);
        }
    }
}

/// Rows by column, in the order of the statement that they are for.
#[derive(Clone)]
pub(crate) struct Columns {
    pub names: Cow<'static, [&'static str]>,
    pub columns: Vec<Column>,
    pub rows: usize,
    /// True when the numbers of jobs among them are places (1, 2, …) in the new numbers that the first statement of a
    /// [write](super::session::Write) takes.
    pub placed: bool,
}

impl Columns {
    /// Takes rows apart for a statement, which names the columns that it is given.
    ///
    /// # Errors
    /// The statement names a column that the rows do not have, or a value cannot be encoded or stored.
    pub(crate) fn of<R: Batch>(rows: Vec<R>, text: &Text) -> Result<Self, StoreError> {
        let (mut all, places) = Self::empty(R::COLUMNS, rows.len(), text)?;
        for row in rows {
            row.put(&mut all.columns, &places)?;
        }
        all.refuse_nul()?;
        Ok(all)
    }

    /// As [`Columns::of`], of rows that are kept.
    pub(crate) fn of_kept<R: Batch>(rows: &[&R], text: &Text) -> Result<Self, StoreError> {
        let (mut all, places) = Self::empty(R::COLUMNS, rows.len(), text)?;
        for row in rows {
            row.put_copy(&mut all.columns, &places)?;
        }
        all.refuse_nul()?;
        Ok(all)
    }

    /// Refuses texts that PostgreSQL cannot store, on both databases alike.
    fn refuse_nul(&self) -> Result<(), StoreError> {
        let has_nul = |column: &Column| match column {
            Column::Ints(_) => false,
            Column::Texts(values) => values.iter().flatten().any(|text| text.contains('\0')),
        };
        match self.columns.iter().position(has_nul) {
            Some(at) => Err(StoreError::Nul { text: self.names.get(at).copied().unwrap_or_default() }),
            None => Ok(()),
        }
    }

    /// The columns of a statement, and the place of each column of the rows among them. A statement that does not name its
    /// columns gets all of them.
    fn empty(
        all: &'static [(&'static str, Option<ColumnKind>)],
        rows: usize,
        text: &Text,
    ) -> Result<(Self, Vec<Option<usize>>), StoreError> {
        let unknown = |name: &str| StoreError::Database {
            action: "make a batch",
            message: format!("the rows have no column `{name}`"),
        };
        let names = match text.columns {
            [] => all.iter().filter(|(_, kind)| kind.is_some()).map(|(name, _)| *name).collect(),
            columns => Cow::Borrowed(columns),
        };
        let mut places = vec![None; all.len()];
        let mut columns = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            // A list of single values has no name.
            let known = all.iter().position(|(column, _)| column == name || column.is_empty());
            let known = known.ok_or_else(|| unknown(name))?;
            places[known] = Some(at);
            columns.push(match all[known].1 {
                Some(ColumnKind::Ints) => Column::Ints(Vec::with_capacity(rows)),
                Some(ColumnKind::Texts) => Column::Texts(Vec::with_capacity(rows)),
                None => return Err(unknown(name)),
            });
        }
        Ok((Self { names, columns, rows, placed: false }, places))
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

#[cfg(test)]
mod tests {
    use super::super::rows::declare;
    use super::*;

    declare! {
        struct Sample {
            number: i64,
            name: String,
            more: Option<i64>,
        }
    }

    const TEXT: Text = Text { sqlite: "", sqlite_row: "", postgres: "", columns: &["name", "number"] };

    #[test]
    fn rows_become_a_json_list_of_lists_in_the_order_of_the_statement() {
        let rows = vec![
            Sample { number: 1, name: "a\"b".to_owned(), more: None },
            Sample { number: 2, name: "ü".to_owned(), more: Some(3) },
        ];
        assert_eq!(Columns::of(rows, &TEXT).unwrap().to_json().unwrap(), r#"[["a\"b",1],["ü",2]]"#);
        assert_eq!(Columns::of(Vec::<Sample>::new(), &TEXT).unwrap().to_json().unwrap(), "[]");
    }

    #[test]
    fn a_text_with_nul_is_refused_with_its_column() {
        let rows = vec![Sample { number: 1, name: "a\0b".to_owned(), more: None }];
        assert!(matches!(Columns::of(rows, &TEXT), Err(StoreError::Nul { text: "name" })));
    }

    #[test]
    fn a_column_that_rows_do_not_have_is_an_error() {
        let other = Text { columns: &["other"], ..TEXT };
        assert!(Columns::of(Vec::<Sample>::new(), &other).is_err());
    }
}
