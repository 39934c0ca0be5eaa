//! The calls of workers and of the scheduler.

use super::ops::claim::alone::{Batch, Outcome};
use super::ops::claim::{self, ReadyQueue};
use super::ops::turns::{TurnEnd, TurnStep};
use super::ops::{leader, leases, upkeep, workers};
use super::rows;
use super::session::Args;
use super::statement::decode_all;
use super::views::by_keys;
use super::write::{Transaction, Work};
use super::{Engine, artifacts, delegations, forks, memories, recall};
use crate::{
    Claim, ClaimRequest, Committed, Duty, Ledger, LedgerError, LedgerReads, Recall, Standing, StoreError,
    Term, Upkeep, WorkerBeat, sql,
};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use serde_json::Value;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::memory::Exchange;
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, ArtifactId, CallId, EngagementId, JobId, Lease, Phase, Settlement, Timestamp, TurnWrite,
};

/// How long claims are made step by step after one met a job that cannot be read, which such claims would take each time.
const DAMAGED_MS: i64 = 3_600_000;
/// The same after a rule applied that stays.
const RULED_MS: i64 = 1_000;

impl Engine {
    /// Returns the queues to ask the writer for, if any has a job for this claim. So a poll without work is one
    /// read.
    pub(super) async fn work_for(
        &self,
        requested: &[String],
        request: &ClaimRequest,
    ) -> Result<Option<claim::Ask>, StoreError> {
        let ready = self.ready_queues(request.kind, request.now).await?;
        let queues = wanted(requested, &ready);
        let has_work = !queues.is_empty() && request.limit > 0;
        Ok(has_work.then(|| claim::Ask { request: ClaimRequest { queues, ..request.clone() }, ready }))
    }

    /// Claims in one statement; `None` when the claim has to be made step by step.
    pub(super) async fn claim_alone(&self, request: &ClaimRequest) -> Result<Option<Batch>, StoreError> {
        let Some(claimer) = &self.claimer else { return Ok(None) };
        if request.limit == 0 || request.now.0 < claimer.from.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let pause = |ms: i64| claimer.from.store(request.now.0.saturating_add(ms), Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        if claimer.asked.send((request.clone(), reply)).await.is_err() {
            return Ok(None);
        }
        let Ok(answer) = answer.await else { return Ok(None) };
        match answer {
            Ok(Outcome::Claimed(batch)) => Ok(Some(batch)),
            Ok(Outcome::Damaged(batch)) => {
                pause(DAMAGED_MS);
                Ok(Some(batch))
            }
            Ok(Outcome::Ruled(stays)) => {
                if stays {
                    pause(RULED_MS);
                }
                Ok(None)
            }
            // Step by step one job that cannot be read keeps no other from being claimed, and the writer waits for a database
            // that is away.
            Err(error) => {
                tracing::warn!(%error, "jobs cannot be claimed in one statement; they are claimed step by step");
                pause(if matches!(error, StoreError::Unreadable { .. }) { DAMAGED_MS } else { RULED_MS });
                Ok(None)
            }
        }
    }

    fn step(&self, step: TurnStep) -> impl Future<Output = Result<Committed, LedgerError>> {
        self.ask(step, Work::Turn)
    }
}

#[async_trait]
impl Ledger for Engine {
    async fn claim(&self, mut request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        if let Some(batch) = self.claim_alone(&request).await? {
            return Ok(batch.claims);
        }
        let requested = std::mem::take(&mut request.queues);
        let mut pauses = again().build();
        while let Some(ask) = self.work_for(&requested, &request).await? {
            let claimed = self.write(ask, |tx, ask| {
                let Transaction { session, unit, ids, definitions, .. } = tx;
                Box::pin(claim::apply(session, unit, ask, definitions, &**ids))
            });
            let claimed = claimed.await?;
            let pause = pauses.next().filter(|_| claimed.busy && claimed.claims.is_empty());
            let Some(pause) = pause else { return Ok(claimed.claims) };
            tokio::time::sleep(pause).await;
        }
        Ok(Vec::new())
    }

    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Committed, LedgerError> {
        let end = TurnEnd::Extend(now.plus_ms(lease_ms));
        self.step(TurnStep { lease: lease.clone(), write, now, end }).await
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let end = TurnEnd::Settle(Box::new(settlement));
        self.step(TurnStep { lease: lease.clone(), write, now, end }).await.map(|_| ())
    }

    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        self.write((leases.to_vec(), now.plus_ms(lease_ms)), |tx, (leases, until)| {
            Box::pin(leases::extend(&mut tx.session, leases, *until))
        })
        .await
    }

    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError> {
        self.write((leases.to_vec(), now), |tx, (leases, now)| {
            Box::pin(leases::release(&mut tx.session, &mut tx.unit, leases, *now))
        })
        .await
    }

    async fn beat(&self, beat: WorkerBeat, silent_ms: i64) -> Result<(), StoreError> {
        self.write((beat, silent_ms), |tx, (beat, silent_ms)| {
            Box::pin(workers::beat(&mut tx.session, beat, *silent_ms))
        })
        .await?
    }

    async fn leave(&self, name: &str, instance: &str) -> Result<(), StoreError> {
        self.write((name.to_owned(), instance.to_owned()), |tx, (name, instance)| {
            Box::pin(workers::leave(&mut tx.session, name, instance))
        })
        .await
    }

    fn reads(&self) -> &dyn LedgerReads {
        self
    }
}

#[async_trait]
impl LedgerReads for Engine {
    async fn standing(&self, held: &[Lease]) -> Result<Standing, StoreError> {
        let (action, text) = ("check leases", &sql::SELECT_HELD_LEASES);
        let keys = (leases::keys(held), [].as_slice());
        let found = by_keys(&self.readers, action, text, keys, |row| {
            let (held, again) = (rows::get::<bool>(row, "held")?, rows::get::<i64>(row, "calls_again")?);
            Ok((rows::get::<String>(row, "lease_token")?, held, again))
        })
        .await?;
        let mut standing = Standing::default();
        let mut tokens = Vec::with_capacity(found.len());
        for (token, paused, again) in found {
            if paused {
                standing.paused.push(token.clone());
            }
            if again > 0 {
                standing.calls_again.push((token.clone(), again));
            }
            tokens.push(token);
        }
        standing.lost = leases::lost(held, tokens);
        Ok(standing)
    }

    async fn most_urgent(&self, queues: &[String]) -> Result<Option<i64>, StoreError> {
        let rows =
            self.readers.read("look for urgent jobs", &sql::SELECT_URGENT_QUEUES, Args::Values(&[])).await?;
        let found = decode_all(&rows, |row| {
            Ok((rows::get::<String>(row, "name")?, rows::get::<Option<i64>>(row, "priority")?))
        })?;
        let serves = |name: &String| queues.iter().any(|queue| queue == "*" || queue == name);
        Ok(found.iter().filter(|(name, _)| serves(name)).filter_map(|(_, priority)| *priority).max())
    }

    async fn state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError> {
        recall::state(&self.readers, scope, now).await
    }

    async fn artifacts_of(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        artifacts::of_engagement(&self.readers, engagement).await
    }

    async fn artifact_bytes(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        artifacts::content(&self.readers, id).await
    }

    async fn agents(&self, names: &[String]) -> Result<Vec<AgentDefinition>, StoreError> {
        delegations::agents(&self.readers, names).await
    }

    async fn recorded_call(&self, job: &JobId, call: &CallId) -> Result<Option<ToolCall>, StoreError> {
        forks::recorded_call(&self.readers, job, call).await
    }

    async fn memories(&self, job: &JobId, rules: &str) -> Result<Vec<Exchange>, StoreError> {
        memories::of_job(&self.readers, job, rules).await
    }

    async fn persisted(&self, job: &JobId, from: i64, until: i64) -> Result<Vec<Value>, StoreError> {
        recall::bodies_of(&self.readers, job, Phase::Persist, (from, until)).await
    }

    async fn recall(
        &self,
        job: &JobId,
        turn: i64,
        window: u32,
        whole_journal: bool,
    ) -> Result<Recall, StoreError> {
        recall::recall(&self.readers, job, turn, window, whole_journal).await
    }
}

#[async_trait]
impl Upkeep for Engine {
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let rows =
            self.readers.read("look for what is due", &sql::SELECT_NEXT_DUE, Args::Values(&[])).await?;
        let due = decode_all(&rows, |row| rows::get::<Option<i64>>(row, "due"))?;
        Ok(due.into_iter().flatten().next().map(Timestamp))
    }

    async fn lead(&self, holder: &str, lease_ms: i64, now: Timestamp) -> Result<Option<Term>, StoreError> {
        // A standby asks often, and only reads while the other's term lasts.
        let rows = self.readers.read("look who leads", &sql::SELECT_LEADER, Args::Values(&[])).await?;
        let leads = decode_all(&rows, |row| {
            Ok((rows::get::<String>(row, "holder")?, rows::get::<Timestamp>(row, "expires_at")?))
        })?;
        if leads.into_iter().any(|(leader, expires_at)| leader != holder && expires_at > now) {
            return Ok(None);
        }
        self.write((holder.to_owned(), lease_ms, now), |tx, (holder, lease_ms, now)| {
            Box::pin(leader::lead(&mut tx.session, holder, *lease_ms, *now, &*tx.ids))
        })
        .await
    }

    async fn resign(&self, term: &Term) -> Result<(), StoreError> {
        self.write(term.clone(), |tx, term| Box::pin(leader::resign(&mut tx.session, term))).await
    }

    async fn perform(
        &self,
        duty: Duty,
        term: &Term,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.write((duty, term.clone(), now, limit), |tx, (duty, term, now, limit)| {
            Box::pin(upkeep::perform(&mut tx.session, &mut tx.unit, *duty, term, *now, *limit))
        })
        .await?
    }

    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.write(now, |tx, now| Box::pin(upkeep::release_all(&mut tx.session, &mut tx.unit, *now))).await
    }
}

/// The pauses of a claim that found what it wanted in the hands of others: together less than half a second.
pub(super) fn again() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(2))
        .with_max_delay(Duration::from_millis(50))
        .with_max_times(12)
        .with_jitter()
}

/// Returns the queues to claim from: those requested that have a job, in their order. `*` means every queue.
fn wanted(requested: &[String], ready: &[ReadyQueue]) -> Vec<String> {
    let has_job = |queue: &&ReadyQueue| queue.ready;
    if requested.iter().any(|queue| queue == "*") {
        return ready.iter().filter(has_job).map(|queue| queue.name.clone()).collect();
    }
    let mut wanted: Vec<String> = Vec::new();
    for queue in
        requested.iter().filter(|name| ready.iter().filter(has_job).any(|queue| queue.name == **name))
    {
        if !wanted.contains(queue) {
            wanted.push(queue.clone());
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::{ReadyQueue, wanted};

    #[test]
    fn queues_keep_the_order_in_which_they_were_asked_for() {
        let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let queue = |name: &&str, ready: bool| ReadyQueue {
            name: (*name).to_owned(),
            pool: None,
            limited: !ready,
            ready,
            set_aside: false,
            capped: false,
            budgeted: false,
        };
        let ready = |names: &[&str]| names.iter().map(|name| queue(name, true)).collect::<Vec<_>>();
        assert_eq!(wanted(&list(&["b", "a", "b", "c"]), &ready(&["a", "b"])), list(&["b", "a"]));
        assert_eq!(wanted(&list(&["*"]), &ready(&["a", "b"])), list(&["a", "b"]));
        assert!(wanted(&list(&["x"]), &ready(&["a"])).is_empty());
        assert!(wanted(&list(&["a", "*"]), &[queue(&"a", false)]).is_empty(), "its limit is used up");
    }
}
