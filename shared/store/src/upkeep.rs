//! The scheduler's side of the store: the leadership, and the duties. A duty changes a bounded number of rows in one transaction,
//! may be repeated, and is fenced by the leader's term.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::{ClockSteps, Timestamp};

/// The right of one scheduler to act as the leader, until it expires. The leader renews it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// The scheduler that leads.
    pub holder: String,
    /// The fencing token, random per term. The store compares it in the transaction of every duty.
    pub token: String,
    /// The time at which it expires, unless it is renewed.
    pub expires_at: Timestamp,
}

/// A duty of the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duty {
    /// `scheduled → available` and `retryable → available` for jobs whose time has come.
    PromoteDue,
    /// `active → available` for jobs whose lease has expired; their reservations are released.
    ReapExpired,
    /// Bounds the leases and the pauses that were written before the clock stepped back: none ends later than if it began
    /// now.
    BoundWaits,
    /// Any non-terminal state `→ discarded` for jobs whose `expires_at` has passed (OJS core §3).
    ExpireJobs,
    /// Reviews whose deadline has passed: the next reviewer is asked if the review has one. Otherwise `open → expired`, and the
    /// waiting job becomes available and treats the expiry as a rejection.
    ExpireReviews,
    /// Records a reminder for each open review, once per interval.
    RemindReviews,
    /// Closes open reviews that cannot be read, a page of them at a time. Their jobs become dead letters.
    SetAsideReviews,
    /// `active → retryable | discarded` for attempts that have taken longer than their timeout, where the worker did
    /// not end them itself (OJS core §4.2.3).
    TimeOutJobs,
    /// Deletes engagements and plain jobs that ended before this time, or longer ago than their queue keeps them, with everything
    /// that belongs to them. A fleet that keeps everything performs it as well, because on PostgreSQL it also creates the
    /// partitions for the history of the next jobs.
    Prune {
        /// Ended before this.
        before: Timestamp,
    },
    /// Lets jobs go on that wait for a budget which limits nothing any more.
    FindLostWaits,
    /// Ends closed batches whose jobs have all ended: records the event `batch.ended`.
    EndBatches,
    /// Numbers new commits, so that their events have a place in the order of all events. Readers do the same when they look; the
    /// leader does it so that none of them has much to do. It needs no term, because numbers are given by one statement at a time.
    NumberCommits,
    /// Adds the jobs that ended before this time to the hourly statistics, each once.
    FoldStatistics {
        /// Ended before this.
        until: Timestamp,
    },
}

/// The scheduler's side of the store.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// Records the steps of the caller's clock. The duties compare leases and attempts by elapsed time: the end of a lease that
    /// began before a step forward is later by the length of the step.
    fn follow(&self, steps: ClockSteps) {
        let _ = steps;
    }

    /// Returns the earliest time at which a duty has work; `None` when nothing waits for a time.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Takes the leadership if it is free or expired, and renews it if `holder` has it. Returns `None` while another scheduler
    /// leads.
    async fn lead(&self, holder: &str, lease_ms: i64, now: Timestamp) -> Result<Option<Term>, StoreError>;

    /// Ends a term early, so that the next leader need not wait for it.
    async fn resign(&self, term: &Term) -> Result<(), StoreError>;

    /// Performs a duty for at most `limit` rows, and returns the number of changed rows. If it equals `limit`, there may be more.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the term has ended: another scheduler leads, and nothing was changed.
    async fn perform(
        &self,
        duty: Duty,
        term: &Term,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// `active → available` for every job of our workers, also before its lease has expired. Only for a caller that knows that no
    /// such worker runs: `turnstone dev`, which is the only process that uses its data directory.
    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError>;
}
