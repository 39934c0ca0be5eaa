//! Every SQL text of this store, each in a file of its own below `sql/`.
//!
//! `build.rs` makes a constant of each file and expands its placeholders: see `build/expand.rs`.

/// One statement in the words of each database.
pub(crate) struct Text {
    /// For SQLite; empty if only PostgreSQL is asked.
    pub sqlite: &'static str,
    /// For PostgreSQL.
    pub postgres: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/statements.rs"));

#[cfg(test)]
#[path = "../build/expand.rs"]
mod expand;

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::migrations::{SQLITE, migrator};
    use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
    use sqlx::{Connection, Executor, SqlSafeStr};

    #[tokio::test]
    async fn sqlite_understands_every_statement() {
        let options = SqliteConnectOptions::new().in_memory(true);
        let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
        migrator(SQLITE).run(&mut conn).await.unwrap();
        let all = ALL.iter().flat_map(|(name, texts)| texts.iter().map(move |text| (name, text)));
        for (name, text) in all.filter(|(_, text)| !text.sqlite.is_empty()) {
            let prepared = (&mut conn).prepare(text.sqlite.into_sql_str()).await;
            assert!(prepared.is_ok(), "{name}: {}\n{}", prepared.err().unwrap(), text.sqlite);
        }
    }
}
