//! The naive comparison: a ledger without shared commits.

use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::Mutex;
use turnstone_domain::{EventName, Lease, Settlement, Timestamp, TurnWrite};
use turnstone_store::{
    Claim, ClaimRequest, Committed, Directive, Ledger, LedgerError, LedgerReads, StoreError, WorkerBeat,
};

/// Does the same work naively: one phase in each transaction, and one transaction after another, so that no two turns
/// ever share a commit. The product's engine runs over it unchanged.
pub struct Naive {
    inner: Arc<dyn Ledger>,
    one_at_a_time: Mutex<()>,
}

impl Naive {
    /// Around a ledger.
    #[must_use]
    pub fn new(inner: Arc<dyn Ledger>) -> Self {
        Self { inner, one_at_a_time: Mutex::new(()) }
    }

    async fn write(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        ms: i64,
    ) -> Result<Committed, LedgerError> {
        let _alone = self.one_at_a_time.lock().await;
        self.inner.checkpoint(lease, write, now, ms).await
    }
}

/// Splits a write into one part for each phase; everything else but the events goes with the last one. The first part names the
/// end of the record that the write follows: it is another one after each part.
fn phase_by_phase(mut write: TurnWrite) -> Vec<TurnWrite> {
    let follows = write.follows.take();
    let checkpoints = std::mem::take(&mut write.checkpoints);
    let mut events = std::mem::take(&mut write.events).into_iter();
    let mut parts: Vec<TurnWrite> = checkpoints
        .into_iter()
        .map(|done| {
            let mut part = TurnWrite { checkpoints: vec![done], ..TurnWrite::default() };
            for event in events.by_ref() {
                let last = event.name == EventName::PhaseCompleted;
                part.events.push(event);
                if last {
                    break;
                }
            }
            part
        })
        .collect();
    let last = parts.pop().unwrap_or_default();
    let rest = last.events.into_iter().chain(events).collect();
    parts.push(TurnWrite { checkpoints: last.checkpoints, events: rest, ..write });
    if let Some(first) = parts.first_mut() {
        first.follows = follows;
    }
    parts
}

#[async_trait]
impl Ledger for Naive {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let _alone = self.one_at_a_time.lock().await;
        self.inner.claim(request).await
    }

    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Committed, LedgerError> {
        let mut committed = Committed::default();
        for part in phase_by_phase(write) {
            committed = self.write(lease, part, now, lease_ms).await?;
        }
        Ok(committed)
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let mut parts = phase_by_phase(write);
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            self.write(lease, part, now, lease.expires_at.since(now)).await?;
        }
        let _alone = self.one_at_a_time.lock().await;
        self.inner.settle(lease, last, settlement, now).await
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
        self.inner.reads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::budget::BudgetMove;
    use turnstone_domain::{NewCheckpoint, NewEvent, Phase, RawJson, RecordEnd, Spent};

    fn done(phase: Phase) -> NewCheckpoint {
        let body = RawJson::empty_object();
        let at = Timestamp(0);
        let spent = Spent::default();
        NewCheckpoint {
            turn: 1,
            phase,
            version: 1,
            body,
            duration_ms: 0,
            tokens_in: 0,
            tokens_out: 0,
            at,
            spent,
        }
    }

    fn event(name: EventName) -> NewEvent {
        NewEvent { name, turn: 1, data: json!({}).into(), at: Timestamp(0) }
    }

    #[test]
    fn each_phase_gets_a_write_of_its_own_and_nothing_is_lost() {
        let write = TurnWrite {
            checkpoints: vec![done(Phase::Init), done(Phase::Norm), done(Phase::Resol)],
            events: vec![
                event(EventName::PhaseCompleted),
                event(EventName::PhaseCompleted),
                event(EventName::ToolUnavailable),
                event(EventName::PhaseCompleted),
                event(EventName::ModelFailed),
            ],
            budget: Some(BudgetMove::Reserve { tokens: 1 }),
            follows: Some(RecordEnd::default()),
            ..TurnWrite::default()
        };
        let parts = phase_by_phase(write);
        let events: Vec<usize> = parts.iter().map(|part| part.events.len()).collect();
        assert_eq!(events, [1, 1, 3]);
        assert!(parts.iter().all(|part| part.checkpoints.len() == 1));
        assert!(parts[0].budget.is_none() && parts[2].budget.is_some());
        let following: Vec<bool> = parts.iter().map(|part| part.follows.is_some()).collect();
        assert_eq!(following, [true, false, false], "each part moves the end of the record");
        assert_eq!(phase_by_phase(TurnWrite::default()), [TurnWrite::default()]);
    }
}
