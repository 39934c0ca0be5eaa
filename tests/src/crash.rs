//! A ledger that numbers the writes of a worker and kills its process with SIGKILL before or after one of
//! them.
//!
//! A write is one commit of the worker: a claim of jobs, a barrier, a settlement. Writes are neither split
//! nor joined, so the product can die at each of these points.

use async_trait::async_trait;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::tool_call::ToolCallMove;
use turnstone_domain::{Lease, Phase, Settlement, Timestamp, TurnWrite};
use turnstone_store::{
    Claim, ClaimRequest, Committed, Directive, Ledger, LedgerError, LedgerReads, StoreError, WorkerBeat,
};

/// A write of the worker.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// `claim`, `checkpoint`, or the settlement: `complete`, `retry`, `discard`, `park`, `yield`, `give_way`.
    pub kind: &'static str,
    /// The checkpoints in it: turn and phase.
    pub phases: Vec<(i64, Phase)>,
    /// The turn that its events are about.
    pub turn: i64,
    /// True if it books a model's answer.
    pub books: bool,
    /// True if it has the intent of a tool call that leaves.
    pub intent: bool,
    /// True if it has the outcome of a tool call.
    pub outcome: bool,
}

impl Written {
    fn of(kind: &'static str, write: &TurnWrite) -> Self {
        let sends = |step: &ToolCallMove| {
            matches!(step, ToolCallMove::Intend { sent: true, .. } | ToolCallMove::Send { .. })
        };
        Self {
            kind,
            phases: write.checkpoints.iter().map(|done| (done.turn, done.phase)).collect(),
            turn: write.events.iter().map(|event| event.turn).max().unwrap_or(0),
            books: matches!(write.budget, Some(BudgetMove::Settle { .. })),
            intent: write.tool_calls.iter().any(sends),
            outcome: write.tool_calls.iter().any(|step| matches!(step, ToolCallMove::Settle { .. })),
        }
    }

    /// Returns true when it has the checkpoint of a phase, in any turn.
    #[must_use]
    pub fn has(&self, phase: Phase) -> bool {
        self.phases.iter().any(|(_, done)| *done == phase)
    }
}

fn kind_of(settlement: &Settlement) -> &'static str {
    match settlement {
        Settlement::Complete { .. } => "complete",
        Settlement::Retry { .. } => "retry",
        Settlement::Discard { .. } => "discard",
        Settlement::Park { .. } => "park",
        Settlement::Yield => "yield",
        Settlement::GiveWay => "give_way",
    }
}

/// The write of a crash point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Which {
    /// The one with this number; the first is 1.
    Number(usize),
    /// The one with the checkpoint of this phase of this turn.
    Phase(i64, Phase),
    /// The first one in this turn with a tool call's intent.
    Intent(i64),
    /// The first one in this turn with a tool call's outcome.
    Outcome(i64),
    /// The settlement by which a job gives its slot to a more urgent one, in any turn.
    GiveWay,
}

/// The point at which the process dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    which: Which,
    after: bool,
}

impl Point {
    /// Reads `write:NUMBER:before|after`, or `TURN:WHAT:before|after`, such as `1:infer:after`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (of, what) = (parts.next()?, parts.next()?);
        let which = match (of, what) {
            ("write", number) => Which::Number(number.parse().ok()?),
            (turn, "intent") => Which::Intent(turn.parse().ok()?),
            (turn, "outcome") => Which::Outcome(turn.parse().ok()?),
            (_, "give_way") => Which::GiveWay,
            (turn, phase) => {
                Which::Phase(turn.parse().ok()?, Phase::ALL.into_iter().find(|p| p.as_str() == phase)?)
            }
        };
        let after = match parts.next()? {
            "before" => false,
            "after" => true,
            _ => return None,
        };
        Some(Self { which, after })
    }

    fn is_at(self, number: usize, write: &Written) -> bool {
        match self.which {
            Which::Number(wanted) => number == wanted,
            Which::Phase(turn, phase) => write.phases.contains(&(turn, phase)),
            Which::Intent(turn) => write.turn == turn && write.intent,
            Which::Outcome(turn) => write.turn == turn && write.outcome,
            Which::GiveWay => write.kind == "give_way",
        }
    }
}

/// The ledger.
pub struct CrashLedger {
    inner: Arc<dyn Ledger>,
    point: Option<Point>,
    writes: Arc<Mutex<Vec<Written>>>,
}

impl CrashLedger {
    /// Decorates a ledger; without a point it only numbers the writes.
    pub fn new(inner: Arc<dyn Ledger>, point: Option<Point>) -> Self {
        Self { inner, point, writes: Arc::default() }
    }

    /// Returns the writes so far, in the order of their numbers.
    pub fn writes(&self) -> Arc<Mutex<Vec<Written>>> {
        Arc::clone(&self.writes)
    }

    fn numbered(&self) -> MutexGuard<'_, Vec<Written>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a write its number.
    fn number(&self, write: Written) -> usize {
        let mut writes = self.numbered();
        writes.push(write);
        writes.len()
    }

    async fn die_if(&self, number: usize, write: &Written, after: bool) {
        if self.point.is_some_and(|point| point.after == after && point.is_at(number, write)) {
            kill_self().await;
        }
    }
}

/// Sends SIGKILL: no destructor runs, and nothing is flushed. The process sends it to itself, so nothing
/// happens in between.
async fn kill_self() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .expect("a process may kill itself");
    std::future::pending::<()>().await;
}

#[async_trait]
impl Ledger for CrashLedger {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        // A claim that finds nothing writes nothing. Dying before one equals dying after the write before it.
        let claims = self.inner.claim(request).await?;
        if !claims.is_empty() {
            let write = Written { kind: "claim", ..Written::default() };
            self.die_if(self.number(write.clone()), &write, true).await;
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
        let written = Written::of("checkpoint", &write);
        let number = self.number(written.clone());
        self.die_if(number, &written, false).await;
        let committed = self.inner.checkpoint(lease, write, now, lease_ms).await;
        self.die_if(number, &written, true).await;
        committed
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let written = Written::of(kind_of(&settlement), &write);
        let number = self.number(written.clone());
        self.die_if(number, &written, false).await;
        let settled = self.inner.settle(lease, write, settlement, now).await;
        self.die_if(number, &written, true).await;
        settled
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
