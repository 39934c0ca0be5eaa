//! The outbox: the claim with its lease, and the writes of the turn that are not durable yet.
//!
//! A turn collects its writes in memory ([`Outbox::pending`]). A barrier commits all of them in one transaction and extends
//! the lease. There are three entries:
//!
//! - [`Outbox::barrier`] commits everything. Call it before an effect that must not happen twice, and after it.
//! - [`Outbox::secure`] commits only when an answer was paid for and is not durable. Call it before anything that may wait.
//! - [`Outbox::try_barrier`] returns the ledger's refusal of a payment or of a state change to the caller.
//!
//! [`Secured`] is the proof that nothing paid is left to commit. Whatever leaves the process takes one as an argument.

use super::bodies::InferBody;
use super::claimed::Claimed;
use super::deadline::Deadline;
use super::secured::Secured;
use super::stop::Stop;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use turnstone_domain::budget::{Budget, BudgetMove, ChargeMove};
use turnstone_domain::checkpoint::PhaseBody;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::Inferred;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    CallId, EventData, EventName, Identified, JobError, Lease, NewCheckpoint, NewEvent, Phase,
    PhaseCompleted, RawJson, RecordEnd, Spent, TurnWrite,
};
use turnstone_store::LedgerError;

/// The claim with its lease, and the writes that are not durable yet.
pub struct Outbox {
    /// The content of the claim.
    pub claimed: Claimed,
    /// The right to write.
    pub lease: Lease,
    /// The end of the record as of the last write, which the next write follows.
    pub record_end: RecordEnd,
    /// The end of this attempt's time, which waits for a write in progress.
    pub deadline: Arc<Deadline>,
    /// Cancelled when the worker drains or the job is paused: the turn then stops before its next phase.
    pub draining: CancellationToken,
    /// The position of the job: the number of the current turn, and what the turns before it left.
    pub position: Position,
    /// The engagement's budget, as of the last write.
    pub budget: Budget,
    /// The write that is not durable yet.
    pub pending: TurnWrite,
    /// The money paid in this phase for which the journal has no row, in millionths of the currency. The checkpoint of
    /// the phase records it.
    pub paid_before: i64,
    /// True from a model's answer until [`Outbox::book`] records its cost.
    pub unrecorded: bool,
    /// The current turn's own id, once INIT is done.
    pub interaction_id: String,
    /// The node of a flow that the turn runs, with the nodes around it.
    pub place: Option<String>,
    /// The number of completed phases of the current turn.
    pub done: usize,
    /// The beginning of the current phase.
    pub phase_began: Instant,
}

impl Outbox {
    /// Returns the proof. Call [`Outbox::secure`] before it, which commits a paid answer.
    ///
    /// # Errors
    /// [`Stop::Fail`] when a model's answer is not committed. This is a defect of the code that called it.
    pub fn secured(&self) -> Result<Secured<'_>, Stop> {
        let is_uncommitted = matches!(self.booking(), Some(BudgetMove::Settle { .. }));
        if is_uncommitted || self.unrecorded {
            let message = "the worker was about to wait although a model's answer is not committed, which is a \
                           defect of Turnstone; nothing was called";
            return Err(JobError::new(FailureKind::Internal, message).into());
        }
        Ok(Secured::proven())
    }

    /// Runs a barrier, if a model's answer that was paid for is not durable yet. Call it before everything that may take
    /// long or leaves the process. So between a model's answer and its commit there is only processor time
    /// (ADR 0008).
    ///
    /// # Errors
    /// As [`Outbox::barrier`].
    pub async fn secure(&mut self) -> Result<(), Stop> {
        match self.booking() {
            Some(BudgetMove::Settle { .. }) => Box::pin(self.barrier()).await,
            _ => Ok(()),
        }
    }

    /// Runs a barrier: commits everything recorded so far, extends the lease, and waits until both are durable.
    ///
    /// # Errors
    /// [`Stop::LeaseLost`] and [`Stop::Store`]: write nothing more. [`Stop::Fail`] when a budget refuses a reservation,
    /// or another turn changed the state; then the reservation and the state changes are dropped, and the rest is
    /// pending again. Also [`Stop::Fail`] when the attempt's time is over; then everything was committed.
    pub async fn barrier(&mut self) -> Result<(), Stop> {
        self.try_barrier().await.map_err(Stop::from)?;
        self.deadline.check().map_err(Stop::from)
    }

    /// Stops the turn when the worker drains or the job is paused. Directly after a barrier the answer is exact, because
    /// the barrier's transaction reads the pause: a pause that the API acknowledged before it is known here.
    ///
    /// # Errors
    /// [`Stop::Drain`].
    pub fn unless_draining(&self) -> Result<(), Stop> {
        if self.draining.is_cancelled() { Err(Stop::Drain) } else { Ok(()) }
    }

    /// Runs a barrier whose refusal the caller may handle, such as by a smaller reservation.
    ///
    /// # Errors
    /// The ledger's. After a refused payment or state change everything else is pending again.
    pub async fn try_barrier(&mut self) -> Result<(), LedgerError> {
        let write = self.take_pending();
        // Only a payment and a change of the state can be refused while the lease is still held. The rest is kept for
        // that case, because the turn continues with it. Without such a part the copy is not made.
        let pays = match write.budget {
            Some(BudgetMove::Settle { .. }) => false,
            Some(BudgetMove::Reserve { .. }) => write.charge.is_some() || self.budget.limit.is_some(),
            None => write.charge.is_some(),
        };
        let kept = (pays || write.state.is_some())
            .then(|| Box::new(TurnWrite { budget: None, charge: None, state: None, ..write.clone() }));
        let (now, lease_ms) = (self.claimed.deps.clock.now(), self.claimed.deps.options.lease_ms());
        let deadline = Arc::clone(&self.deadline);
        let written = {
            let _writing = (deadline.write(), self.claimed.writes());
            self.claimed.deps.ledger.checkpoint(&self.lease, write, now, lease_ms).await
        };
        match written {
            Ok(committed) => {
                (self.budget, self.record_end) = (committed.budget, committed.record_end);
                // A paused job stops as if the worker drained.
                if committed.paused {
                    self.draining.cancel();
                }
                self.lease.expires_at = now.plus_ms(lease_ms);
                Ok(())
            }
            Err(error) => {
                self.pending = kept.map(|kept| *kept).unwrap_or_default();
                Err(error)
            }
        }
    }

    /// Returns the phase that runs next; `None` when the turn is complete.
    #[must_use]
    pub fn next_phase(&self) -> Option<Phase> {
        Phase::resume_after(self.done)
    }

    /// Returns the id of a thing of the current turn: the same one whenever the turn runs again.
    #[must_use]
    pub fn id_of(&self, of: Identified<'_>) -> String {
        self.claimed.id_in(self.position.turn, of)
    }

    /// Returns the id of the call that a node of a flow makes in the current turn.
    #[must_use]
    pub fn planned_call(&self, tool: &str) -> CallId {
        CallId(self.id_of(Identified::PlannedCall { tool }))
    }

    /// Marks the beginning of a phase.
    pub fn enter_phase(&mut self) {
        self.phase_began = Instant::now();
    }

    /// Completes a phase: adds its checkpoint and its event to the pending write, which becomes durable with the next
    /// barrier. The checkpoint has the newest version of the body's form; a later worker uses it to read the body. The events of
    /// INIT and EMIT also have the ids of the turn and of the worker's instance, as OSSA demands.
    ///
    /// # Errors
    /// [`Stop::Fail`] when the body cannot be written as JSON.
    pub fn complete_phase<B: PhaseBody>(&mut self, body: &B) -> Result<(), Stop> {
        let more = match B::PHASE {
            Phase::Init | Phase::Emit => RawJson::written(&self.named()),
            _ => Ok(RawJson::empty_object()),
        };
        self.phase_done(body, (0, 0), more)
    }

    /// Completes INFER. `tokens` are those of prompt and answer; `facts` are the further fields of its event.
    ///
    /// # Errors
    /// As [`Outbox::complete_phase`].
    pub fn complete_infer(
        &mut self,
        body: &InferBody,
        tokens: (i64, i64),
        facts: &Inferred,
    ) -> Result<(), Stop> {
        let more = self.claimed.shown(facts);
        self.phase_done(body, tokens, more)
    }

    fn phase_done<B: PhaseBody>(
        &mut self,
        body: &B,
        (tokens_in, tokens_out): (i64, i64),
        more: serde_json::Result<RawJson>,
    ) -> Result<(), Stop> {
        let (phase, version) = (B::PHASE, B::VERSIONS.last().copied().unwrap_or_default());
        let failed = |e| {
            JobError::new(
                FailureKind::Internal,
                format!("the result of phase {phase} cannot be written as JSON: {e}"),
            )
        };
        let (body, more) = (RawJson::written(body).map_err(failed)?, more.map_err(failed)?);
        let (at, took, turn) =
            (self.claimed.deps.clock.now(), self.phase_began.elapsed(), self.position.turn);
        let duration_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let spent = Spent::default();
        self.pending.checkpoints.push(NewCheckpoint {
            turn,
            phase,
            version,
            body,
            duration_ms,
            tokens_in,
            tokens_out,
            at,
            spent,
        });
        let data = EventData::Phase(PhaseCompleted { phase, duration_ms, more });
        self.pending.events.push(NewEvent { name: EventName::PhaseCompleted, turn, data, at });
        self.done += 1;
        Ok(())
    }

    /// Undoes the completion of the last phase after the store refused its write. `pending` is the pending write as it was
    /// before that phase ended.
    pub fn undo_phase(&mut self, pending: TurnWrite) {
        self.pending = pending;
        self.done -= 1;
    }

    /// Records the costs of the phase that was completed last, together with [`Outbox::paid_before`].
    pub fn spent(&mut self, spent: Spent) {
        let paid = std::mem::take(&mut self.paid_before);
        if let Some(done) = self.pending.checkpoints.last_mut() {
            done.spent = Spent { cost: spent.cost.saturating_add(paid), ..spent };
        }
    }

    /// Records the cost of a model's answer. It becomes durable with the answer, at the next barrier.
    pub fn book(&mut self, tokens: BudgetMove, money: Option<Box<ChargeMove>>) {
        self.unrecorded = false;
        (self.pending.budget, self.pending.charge) = (Some(tokens), money);
    }

    /// Returns the change of the budget that is not durable yet, if there is one.
    pub fn booking(&self) -> Option<&BudgetMove> {
        self.pending.budget.as_ref()
    }

    /// Marks the turn as failed in the event of EMIT, if that event is not durable yet. Without the mark a subscriber would
    /// take a failed turn for a complete one.
    pub fn fail_turn(&mut self) {
        for event in self.pending.events.iter_mut().rev() {
            if let EventData::Phase(completed) = &mut event.data
                && completed.phase == Phase::Emit
            {
                completed.more = completed.more.joined(&RawJson::of(&json!({"failed": true})));
                return;
            }
        }
    }

    /// Returns the position that the next write makes durable, so that the caller may change it.
    pub fn next_position(&mut self) -> &mut Position {
        self.pending.position.get_or_insert_with(|| self.position.clone())
    }

    /// Takes the write that is not durable yet, for a barrier or the settlement, and leaves an empty one. It names the end of
    /// the record that it follows.
    pub fn take_pending(&mut self) -> TurnWrite {
        TurnWrite { follows: Some(self.record_end), ..std::mem::take(&mut self.pending) }
    }

    /// Begins the next turn under the same lease.
    pub fn advance(&mut self, position: Position) {
        self.pending.position = Some(position.clone());
        self.position = position;
        self.done = 0;
    }

    /// Returns true if INIT of the current turn is done.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.done > 0
    }

    /// Returns true while the fleet or the job's tenant is frozen.
    ///
    /// # Errors
    /// As [`Outbox::secured`].
    pub async fn is_frozen(&self) -> Result<bool, Stop> {
        Ok(self.claimed.deps.freezes.is_frozen(self.secured()?, &self.claimed.tenant()).await)
    }

    /// Waits while the fleet or the job's tenant is frozen: no model and no tool is called meanwhile.
    ///
    /// # Errors
    /// [`Stop::Drain`]; as [`Outbox::secured`].
    pub async fn unless_frozen(&self) -> Result<(), Stop> {
        self.claimed.deps.freezes.wait(self.secured()?, &self.claimed.tenant(), &self.draining).await
    }

    /// Waits before the next try of a call; the worker's drain ends the wait.
    ///
    /// # Errors
    /// [`Stop::Drain`]; as [`Outbox::secured`].
    pub async fn pause(&self, wait: Duration) -> Result<(), Stop> {
        self.secured()?;
        tokio::select! {
            biased;
            () = self.draining.cancelled() => Err(Stop::Drain),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }
}
