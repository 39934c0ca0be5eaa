//! The work of a PostgreSQL server, from its own counters and the system's.

use std::time::Duration;
use turnstone_benches::machine::processor_ms_of;
use turnstone_store::{PostgresOptions, PostgresStore};

/// The time in which sessions that end report what they did.
const REPORTED: Duration = Duration::from_millis(500);

/// The work of the server so far.
#[derive(Clone, Copy, Debug)]
pub struct Spending {
    /// Milliseconds of processor time of all its processes; `None` when it runs on another machine.
    pub processor_ms: Option<f64>,
    /// Rows written.
    pub rows: f64,
    /// Bytes of its write-ahead log.
    pub bytes: f64,
}

impl Spending {
    /// Reads the counters of the server, once sessions that have ended have reported.
    ///
    /// # Errors
    /// The server does not answer, or does not let this role read them.
    pub async fn read(server: &PostgresOptions) -> anyhow::Result<Self> {
        tokio::time::sleep(REPORTED).await;
        let processor_ms = processor_ms_of("postgres");
        let counters = PostgresStore::counters(server).await?;
        Ok(Self { processor_ms, rows: counters.rows as f64, bytes: counters.wal_bytes as f64 })
    }

    /// Returns the work since `before`, divided by `count`.
    #[must_use]
    pub fn since(self, before: Self, count: f64) -> Self {
        let spent = self.processor_ms.zip(before.processor_ms);
        Self {
            processor_ms: spent.map(|(after, before)| (after - before) / count),
            rows: (self.rows - before.rows) / count,
            bytes: (self.bytes - before.bytes) / count,
        }
    }
}
