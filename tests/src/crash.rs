//! A ledger that kills its process with SIGKILL at a chosen point, and that commits every phase on its own.
//!
//! The product commits INIT, NORM and RESOL together, and EXEC, PERSIST and EMIT with what follows them. The ledger's
//! contract allows any finer cut, so this one cuts as finely as possible: then a crash is possible, and is tried,
//! before and after the commit of each single phase.

use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use turnstone_domain::artifact::Artifact;
use turnstone_domain::budget::{BudgetMove, ChargeMove};
use turnstone_domain::guardrail_check::GuardrailCheck;
use turnstone_domain::memory::Exchange;
use turnstone_domain::message::{Message, Role};
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::{ToolCall, ToolCallMove};
use turnstone_domain::{
    AgentDefinition, ArtifactId, CallId, EngagementId, EventName, JobId, Lease, NewEvent, Phase, Settlement,
    Timestamp, TurnWrite,
};
use turnstone_store::{
    Claim, ClaimRequest, Committed, Ledger, LedgerError, Recall, Standing, StoreError, WorkerBeat,
};

/// What is committed at the point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The checkpoint of this phase.
    Phase(Phase),
    /// A tool call's intent.
    Intent,
    /// A tool call's outcome.
    Outcome,
    /// The settlement by which a job gives its slot to a more urgent one; in any turn.
    GiveWay,
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
            "give_way" => What::GiveWay,
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
    /// The phases that were committed of writes that were refused in a later part, by the token of the lease. The worker
    /// believes that nothing of such a write is durable, and hands it over again.
    refused_after: Mutex<HashMap<String, Vec<(i64, Phase)>>>,
}

impl CrashLedger {
    /// Decorates a ledger; without a point it only cuts finely. The parts of a settlement extend the lease too.
    pub fn new(inner: Arc<dyn Ledger>, point: Option<Point>, lease_ms: i64) -> Self {
        Self { inner, point, lease_ms, refused_after: Mutex::default() }
    }

    fn refused_after(&self) -> MutexGuard<'_, HashMap<String, Vec<(i64, Phase)>>> {
        self.refused_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of a write that are not durable.
    fn left_of(&self, lease: &Lease, write: TurnWrite) -> Vec<TurnWrite> {
        let durable = self.refused_after().get(&lease.token).cloned().unwrap_or_default();
        let is_left = |part: &TurnWrite| {
            part.checkpoints.iter().all(|done| !durable.contains(&(done.turn, done.phase)))
        };
        cut(write).into_iter().filter(is_left).collect()
    }

    /// Notes that a part is durable while the write that it belongs to may still be refused.
    fn note(&self, lease: &Lease, part: &TurnWrite) {
        let phases = part.checkpoints.iter().map(|done| (done.turn, done.phase));
        self.refused_after().entry(lease.token.clone()).or_default().extend(phases);
    }

    async fn die_if(&self, write: &TurnWrite, turn: i64, settlement: Option<&Settlement>, after: bool) {
        let Some(point) = self.point.filter(|point| point.after == after) else { return };
        let here = match point.what {
            What::Phase(phase) => write.checkpoints.iter().any(|c| c.turn == point.turn && c.phase == phase),
            What::Intent => turn == point.turn && write.tool_calls.iter().any(sends),
            What::Outcome => {
                turn == point.turn
                    && write.tool_calls.iter().any(|step| matches!(step, ToolCallMove::Settle { .. }))
            }
            What::GiveWay => settlement == Some(&Settlement::GiveWay),
        };
        if here {
            kill_self().await;
        }
    }
}

fn sends(step: &ToolCallMove) -> bool {
    matches!(step, ToolCallMove::Intend { sent: true, .. } | ToolCallMove::Send { .. })
}

/// SIGKILL: no destructor runs, nothing is flushed. The process sends it to itself, so nothing happens in between.
async fn kill_self() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .expect("a process may kill itself");
    std::future::pending::<()>().await;
}

/// Cuts a write into parts of at most one checkpoint each, with what belongs to each phase. What is only set aside, paid for
/// or sent after the write goes with the last part.
pub fn cut(write: TurnWrite) -> Vec<TurnWrite> {
    if write.checkpoints.len() < 2 {
        return vec![write];
    }
    // Without `..`: a new field has to be put somewhere.
    let TurnWrite {
        checkpoints,
        messages,
        tool_calls,
        artifacts,
        checks,
        events,
        budget,
        state,
        charge,
        position,
        remember,
    } = write;
    let of_phase = |done| TurnWrite { checkpoints: vec![done], ..TurnWrite::default() };
    let mut parts: Vec<TurnWrite> = checkpoints.into_iter().map(of_phase).collect();
    let last = parts.len() - 1;
    tell(&mut parts, events);
    check(&mut parts, checks);
    say(&mut parts, messages);
    let exec = find(&parts, None, &[Phase::Exec]);
    for step in tool_calls {
        let at = if sends(&step) { last } else { exec };
        parts[at].tool_calls.push(step);
    }
    for (turn, artifact) in artifacts {
        let at = find(&parts, Some(turn), &[Phase::Exec]);
        parts[at].artifacts.push((turn, artifact));
    }
    let books = matches!(budget, Some(BudgetMove::Settle { .. }))
        || matches!(charge.as_deref(), Some(ChargeMove::Settle { .. }));
    let at = if books { find(&parts, None, &[Phase::Infer, Phase::Exec]) } else { last };
    (parts[at].budget, parts[at].charge) = (budget, charge);
    let at = find(&parts, None, &[Phase::Persist]);
    parts[at].state = state;
    let at = position.as_ref().map_or(last, |position| find(&parts, Some(position.turn - 1), &[Phase::Emit]));
    parts[at].position = position;
    parts[last].remember = remember;
    parts
}

/// The part with the checkpoint of the first of these phases that has one, in this turn or in any; else the last part.
fn find(parts: &[TurnWrite], turn: Option<i64>, phases: &[Phase]) -> usize {
    let has = |part: &TurnWrite, phase: Phase| {
        part.checkpoints.iter().any(|c| c.phase == phase && turn.is_none_or(|turn| c.turn == turn))
    };
    let at = |phase: &Phase| parts.iter().position(|part| has(part, *phase));
    phases.iter().find_map(at).unwrap_or(parts.len() - 1)
}

/// Each phase emits its events up to the one that says that it is complete.
fn tell(parts: &mut [TurnWrite], events: Vec<NewEvent>) {
    let mut at = 0;
    for event in events {
        let ends = event.name == EventName::PhaseCompleted;
        parts[at].events.push(event);
        if ends && at + 1 < parts.len() {
            at += 1;
        }
    }
}

/// A guardrail check belongs to the part with its event.
fn check(parts: &mut [TurnWrite], checks: Vec<GuardrailCheck>) {
    let mut checks = checks.into_iter();
    for part in &mut *parts {
        let told = part.events.iter().filter(|event| {
            event.name == EventName::GuardrailChecked && !event.data.whole().as_str().contains("on_record")
        });
        part.checks.extend(checks.by_ref().take(told.count()));
    }
    if let Some(last) = parts.last_mut() {
        last.checks.extend(checks);
    }
}

/// Messages keep their order.
fn say(parts: &mut [TurnWrite], messages: Vec<(i64, Message)>) {
    let mut least = 0;
    for (turn, message) in messages {
        let recalled = message.recalled_from.is_some();
        // The client may send messages of both roles.
        let phases: &[Phase] = match message.role {
            _ if recalled => &[Phase::Norm],
            Role::User => &[Phase::Norm, Phase::Emit],
            Role::Assistant => &[Phase::Infer, Phase::Norm],
            Role::Tool => &[Phase::Exec],
            Role::System => &[Phase::Emit],
        };
        least = find(parts, (!recalled).then_some(turn), phases).max(least);
        parts[least].messages.push((turn, message));
    }
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
    ) -> Result<Committed, LedgerError> {
        let mut committed = Committed::default();
        let turn = turn_of(&write);
        for part in self.left_of(lease, write) {
            self.die_if(&part, turn, None, false).await;
            committed = self.inner.checkpoint(lease, part.clone(), now, lease_ms).await?;
            self.note(lease, &part);
            self.die_if(&part, turn, None, true).await;
        }
        self.refused_after().remove(&lease.token);
        Ok(committed)
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let turn = turn_of(&write);
        let mut parts = self.left_of(lease, write);
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            self.die_if(&part, turn, None, false).await;
            self.inner.checkpoint(lease, part.clone(), now, self.lease_ms).await?;
            self.note(lease, &part);
            self.die_if(&part, turn, None, true).await;
        }
        self.die_if(&last, turn, Some(&settlement), false).await;
        self.inner.settle(lease, last.clone(), settlement.clone(), now).await?;
        self.refused_after().remove(&lease.token);
        self.die_if(&last, turn, Some(&settlement), true).await;
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

    async fn most_urgent(&self, queues: &[String]) -> Result<Option<i64>, StoreError> {
        self.inner.most_urgent(queues).await
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

    async fn artifact_bytes(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.artifact_bytes(id).await
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
