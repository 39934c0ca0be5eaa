//! The calls of a worker and a scheduler to the store while there is nothing to do.

use crate::commands::bench::Bench;
use crate::commands::bench::figures::{Figure, Series, Unit};
use crate::commands::bench::rig::Rig;
use anyhow::Context as _;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Ids as _, Timestamp};
use turnstone_scheduler::{Scheduler, SchedulerOptions};
use turnstone_store::{Duty, StoreError, Term, Upkeep};
use turnstone_worker::model::NoopModel;

/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(8);
/// The time at the start that is not counted, for calls that happen once.
const SETTLING: Duration = Duration::from_millis(500);

/// Measures it.
///
/// # Errors
/// The measurement could not be made.
pub async fn measure(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let unit = Unit::PerSecond("store calls/s");
    let mut worker = Series::new("worker, nothing to do", unit);
    let mut scheduler = Series::new("scheduler that leads a fleet, nothing to do", unit);
    for round in 1..=bench.rounds {
        bench.announce("idle", round);
        let ground = bench.place.open().await?;
        let requested = Arc::new(AtomicU64::new(0));
        let upkeep = Watched { inner: Arc::clone(&ground.store.upkeep), asked: Arc::clone(&requested) };
        let (doorbell, clock) = (ground.store.doorbell.clone(), Arc::clone(&ground.clock));
        let options = SchedulerOptions {
            // A measurement must not delete rows that the user keeps in a store.
            retention: None,
            ..SchedulerOptions::new(format!("bench-{}", SystemIds.next()))
        };
        let stop = CancellationToken::new();
        let leading = Scheduler::new(Arc::new(upkeep), doorbell, clock, options).run(stop.clone());
        let leading = AbortOnDropHandle::new(tokio::spawn(leading));
        let running = Rig::new(64, NoopModel::default()).start(&ground);
        let calls = || [running.tally.calls.load(Ordering::Relaxed), requested.load(Ordering::Relaxed)];
        tokio::time::sleep(SETTLING).await;
        let (before, began) = (calls(), Instant::now());
        tokio::time::sleep(WATCHED).await;
        let (after, seconds) = (calls(), began.elapsed().as_secs_f64());
        worker.in_memory((after[0] - before[0]) as f64 / seconds);
        scheduler.in_memory((after[1] - before[1]) as f64 / seconds);
        stop.cancel();
        leading.await.context("the scheduler did not end well")?;
        running.end().await;
    }
    Ok(vec![worker.figure().aiming("≤ 1", |figure| figure.spread.median <= 1.0), scheduler.figure()])
}

/// Counts the calls of a scheduler.
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

    async fn lead(&self, holder: &str, lease_ms: i64, now: Timestamp) -> Result<Option<Term>, StoreError> {
        self.inner().lead(holder, lease_ms, now).await
    }

    async fn resign(&self, term: &Term) -> Result<(), StoreError> {
        self.inner().resign(term).await
    }

    async fn perform(
        &self,
        duty: Duty,
        term: &Term,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.inner().perform(duty, term, now, limit).await
    }

    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.inner().release_all(now).await
    }
}
