//! The columns of a database, as its own catalog names them, and damage to one value.

use turnstone_tests::Place;

/// Tables that are no rows of the product, or without which nothing can be read.
const LEFT_OUT: [&str; 2] = ["_sqlx_migrations", "data_keys"];

/// A column of texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    pub table: String,
    pub column: String,
    /// Its place among the columns of texts of its table.
    pub place: usize,
    /// The primary key of the table.
    key: Vec<String>,
}

/// A column of a table: its names, its place in the primary key or 0, and 1 if it holds texts.
type Column = (String, String, i64, i64);

async fn columns(place: &Place) -> Vec<Column> {
    let sql = match place {
        Place::File(_) => {
            "SELECT t.name, c.name, c.pk, c.type = 'TEXT' FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c \
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid"
        }
        Place::Url(_) => {
            "SELECT t.relname::text, c.attname::text, \
             coalesce(array_position(k.indkey::int2[], c.attnum) + 1, 0)::bigint, (c.atttypid = 'text'::regtype)::int::bigint \
             FROM pg_class AS t JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped \
             LEFT JOIN pg_index AS k ON k.indrelid = t.oid AND k.indisprimary \
             WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition \
             ORDER BY t.relname, c.attnum"
        }
    };
    let all: Vec<Column> = place.rows(sql).await;
    all.into_iter().filter(|(table, ..)| !LEFT_OUT.contains(&table.as_str())).collect()
}

/// Returns every column of texts.
pub async fn cells(place: &Place) -> Vec<Cell> {
    let columns = columns(place).await;
    let mut cells: Vec<Cell> = Vec::new();
    for (table, column, _, is_text) in &columns {
        if *is_text == 0 {
            continue;
        }
        let mut key: Vec<_> = columns.iter().filter(|(of, _, at, _)| of == table && *at > 0).collect();
        key.sort_by_key(|(_, _, at, _)| *at);
        cells.push(Cell {
            table: table.clone(),
            column: column.clone(),
            place: cells.iter().filter(|cell| cell.table == *table).count(),
            key: key.into_iter().map(|(_, name, ..)| name.clone()).collect(),
        });
    }
    cells
}

/// Adds a row to every table that has none: whole numbers are 1, and texts are empty objects.
pub async fn fill_empty_tables(place: &Place) {
    let columns = columns(place).await;
    let mut tables: Vec<&String> = columns.iter().map(|(table, ..)| table).collect();
    tables.dedup();
    for table in tables {
        if place.number(&format!("SELECT count(*) FROM {table}")).await > 0 {
            continue;
        }
        let of_table = columns.iter().filter(|(of, ..)| of == table);
        let (names, values): (Vec<&str>, Vec<&str>) = of_table
            .map(|(_, column, _, is_text)| (column.as_str(), if *is_text == 1 { "'{}'" } else { "1" }))
            .unzip();
        let insert = format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", "));
        // A CHECK of PostgreSQL may refuse such a row, and then there is none to damage.
        let _ = place.try_change(&unchecked(place, &insert)).await;
    }
}

/// Returns statements before which SQLite forgets its CHECKs: damage does not ask for them.
fn unchecked(place: &Place, sql: &str) -> String {
    match place {
        Place::File(_) => format!("PRAGMA ignore_check_constraints = 1; {sql}"),
        Place::Url(_) => sql.to_owned(),
    }
}

/// A damaged value, and the text that was there before.
pub struct Damage {
    cell: Cell,
    before: String,
    marker: String,
}

impl Cell {
    /// Returns a condition that the newest row of the table meets, and no other.
    fn newest(&self) -> String {
        if self.table == "agent_definitions" {
            return "digest = (SELECT digest FROM engagements ORDER BY seq DESC LIMIT 1)".to_owned();
        }
        let (key, descending) = (self.key.join(", "), self.key.join(" DESC, "));
        format!("({key}) IN (SELECT {key} FROM {} ORDER BY {descending} DESC LIMIT 1)", self.table)
    }

    /// Damages the value of the newest row; `None` where there is no row, or the database refuses it.
    pub async fn damage(self, place: &Place, number: usize) -> Option<Damage> {
        let Self { table, column, .. } = &self;
        let quoted = match place {
            Place::File(_) => format!("quote({column})"),
            Place::Url(_) => format!("quote_nullable({column})"),
        };
        let condition = self.newest();
        let rows: Vec<(String,)> =
            place.rows(&format!("SELECT {quoted} FROM {table} WHERE {condition}")).await;
        let (before,) = rows.into_iter().next()?;
        let marker = format!("[damaged {number}");
        let sql = format!("UPDATE {table} SET {column} = '{marker}' WHERE {condition}");
        place.try_change(&unchecked(place, &sql)).await.ok()?;
        Some(Damage { before, marker, cell: self })
    }
}

impl Damage {
    /// Puts back what was there, if it is still damaged.
    pub async fn undo(self, place: &Place) {
        let Self { cell: Cell { table, column, .. }, before, marker } = &self;
        let sql = format!("UPDATE {table} SET {column} = {before} WHERE {column} = '{marker}'");
        // Meanwhile the row may have come into a state for which the value is none.
        let _ = place.try_change(&unchecked(place, &sql)).await;
    }
}
