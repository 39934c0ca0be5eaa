//! A ledger that kills its process with SIGKILL at a chosen point, and that commits every phase on its own.
//!
//! The product commits INIT, NORM and RESOL together, and EXEC, PERSIST and EMIT with what follows them. The ledger's
//! contract allows any finer cut, so this one cuts as finely as possible: then a crash is possible, and is tried,
//! before and after the commit of each single phase.

use async_trait::async_trait;
use std::sync::Arc;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::budget::Budget;
use turnstone_domain::memory::Exchange;
use turnstone_domain::message::Role;
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::{ToolCall, ToolCallMove};
use turnstone_domain::{
    AgentDefinition, CallId, EngagementId, JobId, Lease, Phase, Settlement, Timestamp, TurnWrite,
};
use turnstone_store::{Claim, ClaimRequest, Ledger, LedgerError, Recall, Standing, StoreError, WorkerBeat};

/// What is committed at the point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The checkpoint of this phase.
    Phase(Phase),
    /// A tool call's intent.
    Intent,
    /// A tool call's outcome.
    Outcome,
}

/// When the process dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// In this turn.
    pub turn: i64,
    /// At this commit.
    pub what: What,
    /// After it, or before it.
    pub after: bool,
}

impl Point {
    /// Reads `turn:what:before|after`, such as `1:infer:after`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let turn = parts.next()?.parse().ok()?;
        let what = match parts.next()? {
            "intent" => What::Intent,
            "outcome" => What::Outcome,
            phase => What::Phase(Phase::ALL.into_iter().find(|p| p.as_str() == phase)?),
        };
        Some(Self { turn, what, after: parts.next()? == "after" })
    }
}

/// The ledger.
pub struct CrashLedger {
    inner: Arc<dyn Ledger>,
    point: Option<Point>,
    lease_ms: i64,
}

impl CrashLedger {
    /// Decorates a ledger; without a point it only cuts finely. The parts of a settlement extend the lease too.
    pub fn new(inner: Arc<dyn Ledger>, point: Option<Point>, lease_ms: i64) -> Self {
        Self { inner, point, lease_ms }
    }

    async fn die_if(&self, write: &TurnWrite, turn: i64, after: bool) {
        let Some(point) = self.point.filter(|point| point.after == after) else { return };
        let here = match point.what {
            What::Phase(phase) => write.checkpoints.iter().any(|c| c.turn == point.turn && c.phase == phase),
            What::Intent => turn == point.turn && write.tool_calls.iter().any(sends),
            What::Outcome => {
                turn == point.turn
                    && write.tool_calls.iter().any(|step| matches!(step, ToolCallMove::Settle { .. }))
            }
        };
        if here {
            kill_self().await;
        }
    }
}

fn sends(step: &ToolCallMove) -> bool {
    matches!(step, ToolCallMove::Intend { sent: true, .. } | ToolCallMove::Send { .. })
}

/// SIGKILL: no destructor runs, nothing is flushed.
async fn kill_self() {
    let pid = std::process::id().to_string();
    std::process::Command::new("kill").args(["-KILL", &pid]).status().expect("kill runs");
    std::future::pending::<()>().await;
}

/// Cuts a write into parts of at most one checkpoint each, with what belongs to each phase.
pub fn cut(write: TurnWrite) -> Vec<TurnWrite> {
    if write.checkpoints.len() < 2 {
        return vec![write];
    }
    let mut parts: Vec<TurnWrite> = write
        .checkpoints
        .into_iter()
        .map(|done| TurnWrite { checkpoints: vec![done], ..TurnWrite::default() })
        .collect();
    let last = parts.len() - 1;
    let find = |parts: &[TurnWrite], turn: Option<i64>, phase: Phase, otherwise: usize| {
        let at = |part: &TurnWrite| {
            part.checkpoints.iter().any(|c| c.phase == phase && turn.is_none_or(|turn| c.turn == turn))
        };
        parts.iter().position(at).unwrap_or(otherwise)
    };
    for (turn, message) in write.messages {
        if message.recalled_from.is_some() {
            let at = find(&parts, None, Phase::Norm, 0);
            parts[at].messages.push((turn, message));
            continue;
        }
        let phase = match message.role {
            Role::User => Phase::Norm,
            Role::Assistant => Phase::Infer,
            Role::Tool => Phase::Exec,
            Role::System => Phase::Emit,
        };
        let at = find(&parts, Some(turn), phase, 0);
        parts[at].messages.push((turn, message));
    }
    let at = find(&parts, None, Phase::Exec, 0);
    parts[at].tool_calls = write.tool_calls;
    parts[at].artifacts = write.artifacts;
    if let Some(position) = write.position {
        let at = find(&parts, Some(position.turn - 1), Phase::Emit, last);
        parts[at].position = Some(position);
    }
    let at = find(&parts, None, Phase::Persist, last);
    parts[at].state = write.state;
    parts[0].events = write.events;
    parts[last].budget = write.budget;
    parts[last].remember = write.remember;
    parts
}

#[async_trait]
impl Ledger for CrashLedger {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.inner.claim(request).await
    }

    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Budget, LedgerError> {
        let mut budget = Budget::default();
        let turn = turn_of(&write);
        for part in cut(write) {
            self.die_if(&part, turn, false).await;
            budget = self.inner.checkpoint(lease, part.clone(), now, lease_ms).await?;
            self.die_if(&part, turn, true).await;
        }
        Ok(budget)
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let turn = turn_of(&write);
        let mut parts = cut(write);
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            self.die_if(&part, turn, false).await;
            self.inner.checkpoint(lease, part.clone(), now, self.lease_ms).await?;
            self.die_if(&part, turn, true).await;
        }
        self.die_if(&last, turn, false).await;
        self.inner.settle(lease, last.clone(), settlement, now).await?;
        self.die_if(&last, turn, true).await;
        Ok(())
    }

    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        self.inner.extend(leases, now, lease_ms).await
    }

    async fn standing(&self, leases: &[Lease]) -> Result<Standing, StoreError> {
        self.inner.standing(leases).await
    }

    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError> {
        self.inner.release(leases, now).await
    }

    async fn beat(&self, beat: WorkerBeat, silent_ms: i64) -> Result<(), StoreError> {
        self.inner.beat(beat, silent_ms).await
    }

    async fn leave(&self, name: &str, instance: &str) -> Result<(), StoreError> {
        self.inner.leave(name, instance).await
    }

    async fn state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError> {
        self.inner.state(scope, now).await
    }

    async fn artifacts_of(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        self.inner.artifacts_of(engagement).await
    }

    async fn agents(&self, names: &[String]) -> Result<Vec<AgentDefinition>, StoreError> {
        self.inner.agents(names).await
    }

    async fn recorded_call(&self, job: &JobId, call: &CallId) -> Result<Option<ToolCall>, StoreError> {
        self.inner.recorded_call(job, call).await
    }

    async fn memories(&self, job: &JobId, rules: &str) -> Result<Vec<Exchange>, StoreError> {
        self.inner.memories(job, rules).await
    }

    async fn recall(
        &self,
        job: &JobId,
        turn: i64,
        window: u32,
        whole_journal: bool,
    ) -> Result<Recall, StoreError> {
        self.inner.recall(job, turn, window, whole_journal).await
    }
}

/// The turn that a write without checkpoints is about; events always carry it.
fn turn_of(write: &TurnWrite) -> i64 {
    write.events.iter().map(|event| event.turn).max().unwrap_or(0)
}
