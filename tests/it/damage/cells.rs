//! The text columns of a database, and damage to what they hold.

use std::fmt;
use turnstone_tests::Place;

/// Tables of the migrations and of SQLite, which are not the product's.
const FOREIGN: &str = "('_sqlx_migrations', 'sqlite_sequence', 'sqlite_stat1')";
/// No list of the product holds more than this.
const MOST: usize = 500;

/// A text column.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Column {
    pub table: String,
    pub name: String,
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table, self.name)
    }
}

/// Returns every text column of the schema, so that a new one is damaged too.
pub async fn columns(place: &Place) -> Vec<Column> {
    let (from, table, name) = match place {
        Place::File(_) => (
            "sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.type = 'TEXT'",
            "m.name",
            "c.name",
        ),
        Place::Url(_) => (
            "information_schema.columns AS c WHERE c.table_schema = 'public' AND c.data_type = 'text'",
            "c.table_name::text",
            "c.column_name::text",
        ),
    };
    let sql = format!("SELECT {table}, {name} FROM {from} AND {table} NOT IN {FOREIGN} ORDER BY 1, 2");
    let rows: Vec<(String, String)> = place.rows(&sql).await;
    rows.into_iter().map(|(table, name)| Column { table, name }).collect()
}

/// What became of the values of a column.
#[derive(PartialEq, Eq, Debug)]
pub enum Damage {
    Done,
    /// The column holds nothing.
    Empty,
    /// The schema does not allow it.
    Refused,
}

impl Column {
    /// Puts `[damaged ` before each value that the column holds: JSON and words become unreadable, keys stay apart.
    pub async fn damage(&self, place: &Place) -> Damage {
        let Self { table, name } = self;
        let found: Vec<(String,)> =
            place.rows(&format!("SELECT DISTINCT {name} FROM {table} WHERE {name} <> ''")).await;
        if found.is_empty() {
            return Damage::Empty;
        }
        assert!(found.len() < MOST, "{self} holds {} values", found.len());
        let sql = format!("UPDATE {table} SET {name} = '[damaged ' || {name} WHERE {name} <> ''");
        match place.try_change(&sql).await {
            Ok(()) => Damage::Done,
            Err(_) => Damage::Refused,
        }
    }

    /// Puts everything back.
    pub async fn repair(&self, place: &Place) {
        let Self { table, name } = self;
        place
            .change(&format!("UPDATE {table} SET {name} = substr({name}, 10) WHERE {name} LIKE '[damaged %'"))
            .await;
    }
}
