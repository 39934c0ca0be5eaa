//! The duties: one file each, and the table in which they run.

mod expire_jobs;
mod expire_reviews;
mod promote_due;
mod reap_expired;

use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_store::{Doorbell, Ring, StoreError, Upkeep};

/// The most rows one transaction of a duty changes, so that workers never wait long behind it.
pub(crate) const BATCH: usize = 500;

/// All duties, in the order in which a tick runs them. Ends come first: a job whose time is over must not be handed
/// to a worker by a later duty of the same tick.
pub(crate) const DUTIES: &[&dyn Duty] = &[
    &expire_jobs::ExpireJobs,
    &expire_reviews::ExpireReviews,
    &reap_expired::ReapExpired,
    &promote_due::PromoteDue,
];

/// Periodic work: bounded, idempotent, one transaction per batch.
#[async_trait]
pub(crate) trait Duty: Sync {
    /// Its name in logs.
    fn name(&self) -> &'static str;

    /// Whether it makes jobs available, so that workers are worth waking.
    fn frees_jobs(&self) -> bool;

    /// Changes at most `limit` rows and returns how many.
    async fn batch(&self, upkeep: &dyn Upkeep, now: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// Runs one duty, batch after batch while they are full, and rings after each that freed jobs. Returns the number of
/// changed rows.
pub(crate) async fn run(
    duty: &dyn Duty,
    upkeep: &dyn Upkeep,
    doorbell: &Doorbell,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let mut total = 0;
    loop {
        let changed = duty.batch(upkeep, now, BATCH).await?;
        if changed > 0 && duty.frees_jobs() {
            doorbell.ring(Ring::Available);
        }
        total += changed;
        if changed < BATCH {
            break;
        }
    }
    if total > 0 {
        tracing::debug!(duty = duty.name(), rows = total, "a duty had work");
    }
    Ok(total)
}
