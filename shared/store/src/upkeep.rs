//! The scheduler's duties: each is bounded, idempotent and one transaction, and fenced by the leader's term.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::Timestamp;

/// The right of one scheduler to act, until it runs out or another takes over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// The scheduler that leads.
    pub holder: String,
    /// Proves it: random per term.
    pub token: String,
    /// Until when, unless it is renewed.
    pub expires_at: Timestamp,
}

/// A duty of the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duty {
    /// `scheduled → available` and `retryable → available` for jobs whose time has come.
    PromoteDue,
    /// `active → available` for jobs whose lease has run out; their reservations are given back.
    ReapExpired,
    /// Any non-terminal state `→ discarded` for jobs whose `expires_at` has passed (OJS core §3).
    ExpireJobs,
    /// Reviews whose deadline has passed: others are asked where there are any, else `open → expired`, and their jobs
    /// become available and learn of the no.
    ExpireReviews,
    /// Reminds of open reviews, once per interval.
    RemindReviews,
    /// Closes open reviews that cannot be read, a page of them at a time. Their jobs become dead letters.
    SetAsideReviews,
    /// `active → retryable | discarded` for attempts that have taken longer than their timeout, where the worker did
    /// not end them itself (OJS core §4.2.3).
    TimeOutJobs,
    /// Deletes engagements and plain jobs that have ended before this time, or longer ago than their queue keeps
    /// them, with everything that belongs to them. A fleet that keeps everything performs it as well: it makes room
    /// for the history of the next jobs, where the store needs room to be made.
    Prune {
        /// Ended before this.
        before: Timestamp,
    },
    /// Notes the end of closed batches whose jobs have all ended.
    EndBatches,
    /// Adds the jobs that ended before this time to the hourly statistics, each once.
    FoldStatistics {
        /// Ended before this.
        until: Timestamp,
    },
}

/// The scheduler's side of the store.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// The earliest time at which any duty has work; `None` when nothing waits for time.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Takes the leadership when it is free, has run out or is held by `holder` itself (then it is renewed); `None`
    /// while another leads.
    async fn lead(&self, holder: &str, lease_ms: i64, now: Timestamp) -> Result<Option<Term>, StoreError>;

    /// Ends a term early, so that the next leader need not wait for it.
    async fn resign(&self, term: &Term) -> Result<(), StoreError>;

    /// Does at most `limit` rows of a duty and returns how many it changed.
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

    /// `active → available` for every job, whatever its lease says. Only for a caller that knows that no worker
    /// lives: `turnstone dev`, which holds the data directory alone.
    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError>;
}
