//! The past of a database: what a standby has that misses the last commits, or a restored disk.

use crate::place::Place;

/// The tables that the writes of turns change.
const TABLES: [&str; 15] = [
    "jobs",
    "job_envelopes",
    "job_results",
    "job_errors",
    "engagements",
    "totals",
    "reservations",
    "budget_waits",
    "journal",
    "tool_calls",
    "stubs",
    "reviews",
    "delegations",
    "guardrail_checks",
    "artifacts",
];

/// The rows of a database at a time, to which it is set back from outside of the product.
pub struct Earlier<'p>(&'p Place);

impl<'p> Earlier<'p> {
    /// Keeps the rows as they are now. A later call replaces what was kept.
    pub async fn keep(place: &'p Place) -> Self {
        let keep = |table| {
            format!("DROP TABLE IF EXISTS kept_{table}; CREATE TABLE kept_{table} AS SELECT * FROM {table};")
        };
        place.change(&format!("BEGIN; {} COMMIT;", TABLES.map(keep).concat())).await;
        Self(place)
    }

    /// Sets the database back to these rows: all commits since are lost.
    pub async fn restore(&self) {
        let restore = |table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table};");
        self.0.change(&format!("BEGIN; {} COMMIT;", TABLES.map(restore).concat())).await;
    }

    /// Drops what was kept.
    pub async fn drop(self) {
        let drop = |table| format!("DROP TABLE kept_{table};");
        self.0.change(&TABLES.map(drop).concat()).await;
    }
}
