//! Every SQL text of this store: the files below `sql/`, and the inserts that are derived from declarations.
//!
//! `build.rs` makes a constant of each statement of a file (`build/files.rs`) and expands its placeholders
//! (`build/expand.rs`).

/// One statement in the words of each database.
pub(crate) struct Text {
    /// For SQLite; empty if only PostgreSQL is asked.
    pub sqlite: &'static str,
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
        Self { sqlite: made(expand::Dialect::Sqlite), postgres: made(expand::Dialect::Postgres), columns }
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
    use crate::migrations::{SQLITE, migrator};
    use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
    use sqlx::{Connection, Executor, SqlSafeStr};

    #[tokio::test]
    async fn sqlite_understands_every_statement() {
        let options = SqliteConnectOptions::new().in_memory(true);
        let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
        migrator(SQLITE).run(&mut conn).await.unwrap();
        let all = ALL.iter().flat_map(|(name, texts)| texts.iter().map(move |text| (*name, text)));
        let inserted = stored().filter(|table| table.is_inserted);
        let all = all.chain(inserted.map(|table| (table.name, &table.inserts.over)));
        for (name, text) in all.filter(|(_, text)| !text.sqlite.is_empty()) {
            let prepared = (&mut conn).prepare(text.sqlite.into_sql_str()).await;
            assert!(prepared.is_ok(), "{name}: {}\n{}", prepared.err().unwrap(), text.sqlite);
        }
    }
}
