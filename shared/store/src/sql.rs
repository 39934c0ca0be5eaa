//! Every SQL text of this store: the files below `sql/`, and the inserts that are derived from declarations.
//!
//! `build.rs` makes a constant of each statement of a file (`build/files.rs`) and expands its placeholders
//! (`build/expand.rs`).

/// One statement in the words of each database.
pub(crate) struct Text {
    /// For SQLite; empty if only PostgreSQL is asked.
    pub sqlite: &'static str,
    /// For SQLite, for one row, whose values are parameters of their own; empty where the statement receives no rows.
    pub sqlite_row: &'static str,
    /// For PostgreSQL.
    pub postgres: &'static str,
    /// The columns of the rows that it is given, in order; none if it is given single values.
    pub columns: &'static [&'static str],
}

impl Text {
    /// Makes the statement that inserts rows of these columns into a table; `more` follows.
    pub(crate) fn insert(table: &str, columns: &'static [&'static str], more: &str) -> Self {
        let text = format!("INSERT INTO {table} {{values: {}}}{more}", columns.join(", "));
        let made = |dialect| -> &'static str {
            // Declarations name columns, so there is nothing in the text that is no placeholder.
            expand::expand(&text, dialect).unwrap_or_default().leak()
        };
        Self {
            sqlite: made(expand::Dialect::Sqlite),
            sqlite_row: made(expand::Dialect::SqliteRow),
            postgres: made(expand::Dialect::Postgres),
            columns,
        }
    }

    /// Makes a statement that takes single values. It is kept as long as the process runs.
    pub(crate) fn read(text: &str) -> Self {
        let made = |dialect| -> &'static str { expand::expand(text, dialect).unwrap_or_default().leak() };
        Self {
            sqlite: made(expand::Dialect::Sqlite),
            sqlite_row: "",
            postgres: made(expand::Dialect::Postgres),
            columns: &[],
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/statements.rs"));

#[path = "../build/expand.rs"]
mod expand;
#[cfg(test)]
#[path = "../build/files.rs"]
mod files;

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::engine::rows::stored;
    use crate::sqlite::migrated_in_memory;

    #[test]
    fn sqlite_understands_every_statement() {
        let conn = migrated_in_memory();
        let all = ALL.iter().flat_map(|(name, texts)| texts.iter().map(move |text| (*name, text)));
        let inserted = stored().filter(|table| table.is_inserted);
        let all = all.chain(inserted.map(|table| (table.name, &table.inserts.over)));
        for (name, text) in all.flat_map(|(name, text)| [(name, text.sqlite), (name, text.sqlite_row)]) {
            let prepared = conn.prepare(text);
            // The text that empties the tables has many statements.
            let is_fine = matches!(prepared, Ok(_) | Err(rusqlite::Error::MultipleStatement));
            assert!(is_fine, "{name}: {}\n{text}", prepared.err().unwrap());
        }
    }
}
