//! What a worker and a scheduler ask of the store while there is nothing to do.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::rig::Rig;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::{SystemClock, Timestamp};
use turnstone_scheduler::Scheduler;
use turnstone_store::{StoreError, Upkeep};
use turnstone_worker::model::NoopModel;

/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(8);
/// What happens once at the start is not counted.
const SETTLING: Duration = Duration::from_millis(500);

/// Measures it.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let mut series = Series::new("worker and scheduler, nothing to do", Unit::PerSecond("store calls/s"));
    for round in 1..=bench.rounds {
        bench.tell("idle", round);
        let ground = bench.place.open().await?;
        let asked = Arc::new(AtomicU64::new(0));
        let upkeep = Watched { inner: Arc::clone(&ground.store.upkeep), asked: Arc::clone(&asked) };
        let scheduler = Scheduler {
            upkeep: Arc::new(upkeep),
            doorbell: ground.store.doorbell.clone(),
            clock: Arc::new(SystemClock),
        };
        let _scheduler = AbortOnDropHandle::new(tokio::spawn(scheduler.run(CancellationToken::new())));
        let running = Rig::new(64, NoopModel::default()).start(&ground);
        let calls = || asked.load(Ordering::Relaxed) + running.tally.calls.load(Ordering::Relaxed);
        tokio::time::sleep(SETTLING).await;
        let (before, began) = (calls(), Instant::now());
        tokio::time::sleep(WATCHED).await;
        series.in_memory((calls() - before) as f64 / began.elapsed().as_secs_f64());
        running.end().await;
    }
    Ok(vec![series.figure().aiming("≤ 1", |figure| figure.spread.median <= 1.0)])
}

/// Counts what a scheduler asks.
struct Watched {
    inner: Arc<dyn Upkeep>,
    asked: Arc<AtomicU64>,
}

impl Watched {
    fn inner(&self) -> &dyn Upkeep {
        self.asked.fetch_add(1, Ordering::Relaxed);
        &*self.inner
    }
}

#[async_trait]
impl Upkeep for Watched {
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner().next_due().await
    }

    async fn promote_due(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.inner().promote_due(now, limit).await
    }

    async fn reap_expired(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.inner().reap_expired(now, limit).await
    }

    async fn expire_jobs(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.inner().expire_jobs(now, limit).await
    }

    async fn expire_reviews(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.inner().expire_reviews(now, limit).await
    }

    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.inner().release_all(now).await
    }
}
