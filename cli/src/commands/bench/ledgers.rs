//! A ledger around the store's own that counts.

use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::memory::Exchange;
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, ArtifactId, CallId, EngagementId, JobId, Lease, Settlement, Timestamp, TurnWrite,
};
use turnstone_store::{
    Claim, ClaimRequest, Committed, Directive, Ledger, LedgerError, LedgerReads, Recall, Standing,
    StoreError, WorkerBeat,
};

/// Counts of the calls of a ledger.
#[derive(Debug, Default)]
pub struct Tally {
    /// Calls of any kind.
    pub calls: AtomicU64,
    /// Calls that committed something a turn waited for: claims that brought a job, checkpoints, settlements.
    pub waits: AtomicU64,
    settled: watch::Sender<Settled>,
    /// The settlements that a measurement waits for: waking up for each of them would count as the turns' own time.
    wanted: AtomicU64,
    first: std::sync::Mutex<HashMap<JobId, Instant>>,
}

/// Settlements so far.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    count: u64,
    latest: Option<Instant>,
}

impl Tally {
    /// Returns the settlements so far, and the time from `began` to the latest of them. Many turns run in step with
    /// each other and end together, so the time since then would be counted for nothing.
    #[must_use]
    pub fn settled_since(&self, began: Instant) -> (u64, Duration) {
        let Settled { count, latest } = *self.settled.borrow();
        (count, latest.map_or(began.elapsed(), |latest| latest.duration_since(began)))
    }

    /// Waits until there were this many settlements.
    pub async fn until_settled(&self, count: u64) {
        let mut settled = self.settled.subscribe();
        self.wanted.store(count, Ordering::Release);
        // The sender is a field of this very value, so the channel cannot be closed.
        let _ = settled.wait_for(|settled| settled.count >= count).await;
    }

    /// Returns the times of each job's first checkpoint so far, and clears them.
    #[must_use]
    pub fn take_first(&self) -> HashMap<JobId, Instant> {
        std::mem::take(&mut *self.first.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn reached(&self, job: &JobId) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.entry(job.clone()).or_insert_with(Instant::now);
    }

    fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn waited(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts the calls of a ledger.
pub struct CountedLedger {
    inner: Arc<dyn Ledger>,
    tally: Arc<Tally>,
}

impl CountedLedger {
    /// Counts into `tally`.
    #[must_use]
    pub fn new(inner: Arc<dyn Ledger>, tally: Arc<Tally>) -> Self {
        Self { inner, tally }
    }
}

#[async_trait]
impl Ledger for CountedLedger {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.tally.called();
        let claims = self.inner.claim(request).await?;
        if !claims.is_empty() {
            self.tally.waited();
        }
        Ok(claims)
    }

    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Committed, LedgerError> {
        self.tally.called();
        self.tally.waited();
        self.tally.reached(&lease.job);
        self.inner.checkpoint(lease, write, now, lease_ms).await
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        self.tally.called();
        self.tally.waited();
        let completed = matches!(settlement, Settlement::Complete { .. });
        self.inner.settle(lease, write, settlement, now).await?;
        if completed {
            let latest = Some(Instant::now());
            self.tally.settled.send_if_modified(|settled| {
                *settled = Settled { count: settled.count + 1, latest };
                settled.count >= self.tally.wanted.load(Ordering::Acquire)
            });
        }
        Ok(())
    }

    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        self.tally.called();
        self.inner.extend(leases, now, lease_ms).await
    }

    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError> {
        self.tally.called();
        self.inner.release(leases, now).await
    }

    async fn beat(&self, beat: WorkerBeat, silent_ms: i64) -> Result<Option<Directive>, StoreError> {
        self.inner.beat(beat, silent_ms).await
    }

    async fn leave(&self, name: &str, instance: &str) -> Result<(), StoreError> {
        self.inner.leave(name, instance).await
    }

    fn reads(&self) -> &dyn LedgerReads {
        self
    }
}

#[async_trait]
impl LedgerReads for CountedLedger {
    async fn standing(&self, leases: &[Lease]) -> Result<Standing, StoreError> {
        self.tally.called();
        self.inner.reads().standing(leases).await
    }

    async fn most_urgent(&self, queues: &[String]) -> Result<Option<i64>, StoreError> {
        self.tally.called();
        self.inner.reads().most_urgent(queues).await
    }

    async fn state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError> {
        self.tally.called();
        self.inner.reads().state(scope, now).await
    }

    async fn artifacts_of(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        self.inner.reads().artifacts_of(engagement).await
    }

    async fn artifact_bytes(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.reads().artifact_bytes(id).await
    }

    async fn agents(
        &self,
        names: &[String],
        tenant: Option<&str>,
    ) -> Result<Vec<AgentDefinition>, StoreError> {
        self.inner.reads().agents(names, tenant).await
    }

    async fn recorded_call(&self, job: &JobId, call: &CallId) -> Result<Option<ToolCall>, StoreError> {
        self.inner.reads().recorded_call(job, call).await
    }

    async fn memories(&self, job: &JobId, rules: &str) -> Result<Vec<Exchange>, StoreError> {
        self.inner.reads().memories(job, rules).await
    }

    async fn persisted(
        &self,
        job: &JobId,
        from: i64,
        until: i64,
    ) -> Result<Vec<serde_json::Value>, StoreError> {
        self.inner.reads().persisted(job, from, until).await
    }

    async fn recall(&self, job: &JobId, turn: i64, window: u32, whole: bool) -> Result<Recall, StoreError> {
        self.tally.called();
        self.inner.reads().recall(job, turn, window, whole).await
    }
}
