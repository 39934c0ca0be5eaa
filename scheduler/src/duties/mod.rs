//! The duties, one file each, and the table of them. A duty is a request to the store; its rules are in
//! `shared/store/src/engine/ops/upkeep.rs` and the files that it names.

mod bound_waits;
mod end_batches;
mod expire_jobs;
mod expire_reviews;
mod find_lost_waits;
mod fire_cron;
mod fold_statistics;
mod number_commits;
mod promote_due;
mod prune;
mod reap_expired;
mod remind_reviews;
mod set_aside_reviews;
mod time_out_jobs;

pub(crate) use fire_cron::FireCron;

use std::time::Duration;
use turnstone_domain::Timestamp;
use turnstone_store::{Duty, StoreError, Term, Upkeep};

/// The most rows that one transaction of a duty changes. The bound keeps the time short for which it locks them.
pub(crate) const BATCH: usize = 500;

/// The most transactions of a duty before the next duty of the table runs.
pub(crate) const BATCHES: usize = 20;

/// All duties, in the order in which they run. Duties that end jobs come first: an expired job must not be made available
/// by a later duty. Statistics come before pruning, which deletes only counted jobs.
pub(crate) const DUTIES: &[Entry] = &[
    expire_jobs::ENTRY,
    expire_reviews::ENTRY,
    remind_reviews::ENTRY,
    time_out_jobs::ENTRY,
    reap_expired::ENTRY,
    promote_due::ENTRY,
    bound_waits::ENTRY,
    find_lost_waits::ENTRY,
    end_batches::ENTRY,
    number_commits::ENTRY,
    fold_statistics::ENTRY,
    prune::ENTRY,
    set_aside_reviews::ENTRY,
];

/// A duty: a bounded and idempotent request of the leader to the store, with its schedule. One transaction per batch.
pub(crate) struct Entry {
    /// Its name in logs.
    pub(crate) name: &'static str,
    /// When it runs.
    pub(crate) interval: Interval,
    /// The request for this time and retention.
    duty: fn(Timestamp, Option<Duration>) -> Duty,
}

/// When a duty runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interval {
    /// When the store reports that something is due.
    WhenDue,
    /// Periodically, this many milliseconds after it completed.
    EveryMs(i64),
}

/// The outcome of one run of a duty.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    /// The rows it changed.
    pub(crate) rows: usize,
    /// True if its batches were used up before its work was done.
    pub(crate) unfinished: bool,
}

impl Entry {
    /// Runs the duty, batch after batch while they are full. The store notifies workers of the jobs that each batch
    /// makes available.
    pub(crate) async fn run(
        &self,
        upkeep: &dyn Upkeep,
        term: &Term,
        now: Timestamp,
        retention: Option<Duration>,
    ) -> Result<Outcome, StoreError> {
        let mut outcome = Outcome::default();
        let duty = (self.duty)(now, retention);
        for batch in 1..=BATCHES {
            let changed = upkeep.perform(duty, term, now, BATCH).await?;
            outcome.rows += changed;
            if changed < BATCH {
                break;
            }
            outcome.unfinished = batch == BATCHES;
        }
        if outcome.rows > 0 {
            tracing::debug!(duty = self.name, rows = outcome.rows, "a duty had work");
        }
        Ok(outcome)
    }
}
