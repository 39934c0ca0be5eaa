//! The jobs that are measured with, in a store.

use super::place::Ground;
use futures::future::try_join_all;
use turnstone_benches::jobs::QUEUE;
use turnstone_domain::{Clock as _, JobId, NewJob, Settlement, SystemClock, TurnWrite};
use turnstone_store::{Claim, ClaimRequest, JobKind, StoreError};

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

/// Claims up to `batch` jobs, settles them together as completed, and returns how many there were.
///
/// # Errors
/// The store failed.
pub async fn settle_some(ground: &Ground, kind: JobKind, batch: usize) -> anyhow::Result<usize> {
    let ledger = &ground.store.ledger;
    let request = ClaimRequest {
        kind,
        queues: vec![QUEUE.to_owned()],
        limit: batch,
        worker_id: "bench".to_owned(),
        lease_ms: 60_000,
        tenant: None,
        runtime_tags: None,
        now: ground.clock.now(),
    };
    let settle = |claim: Claim| async move {
        let done = Settlement::Complete { result: "done".into(), withheld: false };
        ledger.settle(&claim.lease, TurnWrite::default(), done, ground.clock.now()).await
    };
    Ok(try_join_all(ledger.claim(request).await?.into_iter().map(settle)).await?.len())
}

/// Ends the jobs that wait in a store of the user, without running them; a temporary store is removed as a whole.
///
/// # Errors
/// The store failed.
pub async fn clear(ground: &Ground) -> anyhow::Result<()> {
    if ground.temporary {
        return Ok(());
    }
    for kind in [JobKind::Plain, JobKind::Agent] {
        while settle_some(ground, kind, TOGETHER).await? > 0 {}
    }
    Ok(())
}

/// Cancels jobs that may be running, in a store of the user.
///
/// # Errors
/// The store failed.
pub async fn cancel(ground: &Ground, jobs: &[JobId]) -> Result<(), StoreError> {
    if ground.temporary {
        return Ok(());
    }
    for some in jobs.chunks(TOGETHER) {
        try_join_all(some.iter().map(|id| ground.store.intake.cancel(id, SystemClock.now()))).await?;
    }
    Ok(())
}
