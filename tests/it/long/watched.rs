//! A ledger that counts the calls of turns and their rows and bytes.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// The writes at the barriers of one turn, by the turn of the newest checkpoint in each write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Calls of the store.
    pub calls: usize,
    /// Checkpoints, messages, moves of tool calls and events.
    pub rows: usize,
    /// The total length in bytes.
    pub bytes: usize,
}

/// The counted calls.
#[derive(Debug, Default)]
pub struct Tally {
    /// By turn.
    pub written: BTreeMap<i64, Written>,
    /// The length of each claim of an agent job, with its recalled messages.
    pub claims: Vec<usize>,
    /// The length of each recall.
    pub recalls: Vec<usize>,
    /// Other reads: of state and of agents.
    pub reads: usize,
}

/// A ledger that counts into a [`Tally`].
pub struct Watched {
    inner: Arc<dyn Ledger>,
    tally: Arc<Mutex<Tally>>,
}

impl Watched {
    /// Returns a ledger around `inner` that counts into `tally`.
    pub fn new(inner: Arc<dyn Ledger>, tally: &Arc<Mutex<Tally>>) -> Self {
        Self { inner, tally: Arc::clone(tally) }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writes(&self, write: &TurnWrite) {
        let Some(turn) = write.checkpoints.iter().map(|done| done.turn).max() else { return };
        let mut tally = self.tally();
        let written = tally.written.entry(turn).or_default();
        written.calls += 1;
        written.rows +=
            write.checkpoints.len() + write.messages.len() + write.tool_calls.len() + write.events.len();
        written.bytes += length(write);
    }
}

/// Returns the length of a value's debug text.
fn length(value: &impl std::fmt::Debug) -> usize {
    format!("{value:?}").len()
}

#[async_trait]
impl Ledger for Watched {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let claims = self.inner.claim(request).await?;
        self.tally().claims.extend(claims.iter().map(length));
        Ok(claims)
    }

    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Committed, LedgerError> {
        self.writes(&write);
        self.inner.checkpoint(lease, write, now, lease_ms).await
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        self.inner.settle(lease, write, settlement, now).await
    }

    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        self.inner.extend(leases, now, lease_ms).await
    }

    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError> {
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
impl LedgerReads for Watched {
    async fn standing(&self, leases: &[Lease]) -> Result<Standing, StoreError> {
        self.inner.reads().standing(leases).await
    }

    async fn most_urgent(&self, queues: &[String]) -> Result<Option<i64>, StoreError> {
        self.inner.reads().most_urgent(queues).await
    }

    async fn state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError> {
        self.tally().reads += 1;
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
        self.tally().reads += 1;
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
        let recall = self.inner.reads().recall(job, turn, window, whole).await?;
        self.tally().recalls.push(length(&recall));
        Ok(recall)
    }
}
