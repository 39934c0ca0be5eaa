//! The jobs that are measured with, in a store.

use super::place::Ground;
use futures::future::try_join_all;
use turnstone_domain::{Clock as _, JobId, NewJob, SystemClock};
use turnstone_store::StoreError;

/// Jobs that are enqueued together before a measurement.
const TOGETHER: usize = 500;

/// Enqueues `count` jobs and returns their ids.
///
/// # Errors
/// The store refused them.
pub async fn enqueue(
    ground: &Ground,
    count: usize,
    job: impl Fn() -> NewJob,
) -> Result<Vec<JobId>, StoreError> {
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        let jobs = (0..TOGETHER.min(count - ids.len())).map(|_| job()).collect();
        ids.extend(ground.store.intake.push(jobs).await?.into_iter().map(|pushed| pushed.id));
    }
    Ok(ids)
}

/// Cancels the rest of these jobs in a store of the user; a temporary store is removed as a whole.
///
/// # Errors
/// The store failed.
pub async fn clear(ground: &Ground, jobs: &[JobId]) -> Result<(), StoreError> {
    if ground.temporary {
        return Ok(());
    }
    for some in jobs.chunks(TOGETHER) {
        try_join_all(some.iter().map(|id| ground.store.intake.cancel(id, SystemClock.now()))).await?;
    }
    Ok(())
}
