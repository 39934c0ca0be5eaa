//! Every SQL text of this store, each in a file of its own below `sql/`.
//!
//! `build.rs` makes a constant of each file and expands its placeholders: see `build/expand.rs`.

/// One statement in the words of each database.
pub(crate) struct Text {
    /// For SQLite; empty if only PostgreSQL is asked.
    pub sqlite: &'static str,
    /// For SQLite, for one row, whose values are parameters of their own; empty where the statement receives no rows.
    pub sqlite_row: &'static str,
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
    use crate::sqlite::migrated_in_memory;

    #[test]
    fn sqlite_understands_every_statement() {
        let conn = migrated_in_memory();
        let all = ALL.iter().flat_map(|(name, texts)| texts.iter().map(move |text| (name, text)));
        for (name, text) in all.flat_map(|(name, text)| [(name, text.sqlite), (name, text.sqlite_row)]) {
            let prepared = conn.prepare(text);
            // What empties the tables is many statements.
            let is_fine = matches!(prepared, Ok(_) | Err(rusqlite::Error::MultipleStatement));
            assert!(is_fine, "{name}: {}\n{text}", prepared.err().unwrap());
        }
    }
}
