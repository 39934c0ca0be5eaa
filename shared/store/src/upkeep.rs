//! What time does: each method is bounded, idempotent and one transaction.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::Timestamp;

/// The scheduler's side of the store. Every method returns how many rows it changed.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// The earliest time at which any duty has work; `None` when nothing waits for time.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// `scheduled → available` and `retryable → available` for jobs whose time has come.
    async fn promote_due(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// `active → available` for jobs whose lease has run out; their reservations are given back.
    async fn reap_expired(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Any non-terminal state `→ discarded` for jobs whose `expires_at` has passed (OJS core §3).
    async fn expire_jobs(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// `open → expired` for reviews whose deadline has passed; their jobs become available and learn of the no.
    async fn expire_reviews(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// `active → available` for every job, whatever its lease says. Only for a caller that knows that no worker
    /// lives: `turnstone dev`, which holds the data directory alone.
    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError>;
}
