//! Numbers new commits, which gives their events a place in the order of all events.
//!
//! PostgreSQL has many writers, whose transactions commit in another order than they begin. So a commit adds its random identity
//! to `new_commits`, and a later statement numbers what has been committed (`insert_numbered_commits.sql`). It never waits for a
//! transaction that is open. A process runs it when one of its readers looks for events, and the leader runs it every second.

use super::Engine;
use super::rows::get;
use super::session::Args;
use super::statement::decode_all;
use super::views::one;
use crate::{OpenTransaction, StoreError, sql};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The commits that one statement numbers at most.
const MOST: u32 = 10_000;
/// The least time between two statements of a process.
const PAUSE: Duration = Duration::from_millis(15);
/// The least part of the time in which a process pauses: a database that takes long is asked less often.
const REST: u32 = 2;
/// Numbers of two statements are up to this far apart, by chance: see [`Numbering::gap`].
const GAP: i64 = 1 << 20;

/// The last statement of this process.
#[derive(Default)]
pub(super) struct Numbering(Mutex<Option<Round>>);

struct Round {
    begun: Instant,
    /// The time before which the next one does not begin.
    rests_until: Instant,
    failed: bool,
}

impl Engine {
    /// Numbers everything that was committed before this call.
    pub(super) async fn number_commits(&self) -> Result<(), StoreError> {
        let Some(numbering) = &self.numbering else { return Ok(()) };
        let requested = Instant::now();
        let mut last = numbering.0.lock().await;
        if let Some(round) = &*last {
            if round.begun > requested {
                let message = "another request of this process tried it and failed".to_owned();
                let failed = StoreError::Unavailable { action: "number new commits", message };
                return if round.failed { Err(failed) } else { Ok(()) };
            }
            tokio::time::sleep_until(round.rests_until).await;
        }
        loop {
            let begun = Instant::now();
            let picked = self.number_some().await;
            let took = begun.elapsed();
            let rests_until = begun + took + PAUSE.max(took * REST);
            *last = Some(Round { begun, rests_until, failed: picked.is_err() });
            if picked? < i64::from(MOST) {
                return Ok(());
            }
        }
    }

    async fn number_some(&self) -> Result<i64, StoreError> {
        let values = [Numbering::gap(&self.ids.next()).into(), MOST.into()];
        let text = &sql::INSERT_NUMBERED_COMMITS;
        let rows = self.readers.read("number new commits", text, Args::Values(&values)).await?;
        let picked = decode_all(&rows, |row| get::<i64>(row, "picked"))?;
        Ok(picked.into_iter().next().unwrap_or_default())
    }
}

impl Engine {
    /// Returns the oldest transaction of the server that is open for long. It delays no reader; it keeps vacuum from removing the
    /// rows that were numbered since.
    pub(super) async fn oldest_transaction(&self) -> Result<Option<OpenTransaction>, StoreError> {
        if self.numbering.is_none() {
            return Ok(None);
        }
        let (action, text) = ("look for open transactions", &sql::SELECT_OLDEST_TRANSACTION);
        one(&self.readers, action, text, &[], |row| {
            Ok(OpenTransaction {
                database: get(row, "database")?,
                pid: get(row, "pid")?,
                seconds: get(row, "seconds")?,
            })
        })
        .await
    }

    /// Logs it.
    pub(super) async fn warn_of_open_transaction(&self) {
        match self.oldest_transaction().await {
            Ok(Some(open)) => {
                let OpenTransaction { database, pid, seconds } = open;
                tracing::warn!(
                    database,
                    pid,
                    seconds,
                    "a transaction of the database server is open for long; it keeps vacuum from removing old rows"
                );
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "open transactions could not be looked for"),
        }
    }
}

impl Numbering {
    /// Returns the gap before the numbers of a statement. It is random: a promoted standby that lost the statement numbers the
    /// same commits anew, perhaps in another order. Then a cursor with the old number must not fit by accident.
    fn gap(new: &str) -> i64 {
        1 + turnstone_domain::ids::commit_id(new) % GAP
    }
}
