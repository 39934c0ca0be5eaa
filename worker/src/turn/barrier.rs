//! Barriers: a turn waits until its writes are durable, with the proof that every answer it has paid for is.

use super::state::Turn;
use super::stop::Stop;
use std::marker::PhantomData;
use std::sync::Arc;
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, TurnWrite};
use turnstone_store::LedgerError;

/// The proof that everything the turn has paid for is committed. Every function that leaves the process takes
/// one: a kill during its wait loses no answer (ADR 0008). It borrows the turn, so nothing is added to the
/// turn meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Secured<'t>(PhantomData<&'t Turn>);

#[cfg(test)]
impl Secured<'static> {
    /// Returns a proof without a turn, for tests of functions that take one.
    pub fn assumed() -> Self {
        Self(PhantomData)
    }
}

impl Turn {
    /// Returns the proof. [`Turn::secure`] commits what prevents it.
    ///
    /// # Errors
    /// [`Stop::Fail`] when a model's answer is not committed: a defect of this worker.
    pub fn secured(&self) -> Result<Secured<'_>, Stop> {
        let books = matches!(self.booking(), Some(BudgetMove::Settle { .. }));
        if books || self.unrecorded {
            let message =
                "the worker was about to wait with an answer that is not committed (a defect of its own)";
            return Err(JobError::new(FailureKind::Internal, message).into());
        }
        Ok(Secured(PhantomData))
    }

    /// Runs a barrier, if something that was paid for is not durable yet. It precedes everything that may
    /// take long or leaves the process. So between a model's answer and its commit there is only processor
    /// time (ADR 0008).
    ///
    /// # Errors
    /// As [`Turn::barrier`].
    pub async fn secure(&mut self) -> Result<(), Stop> {
        match self.booking() {
            Some(BudgetMove::Settle { .. }) => Box::pin(self.barrier()).await,
            _ => Ok(()),
        }
    }

    /// Runs a barrier: waits until everything recorded so far is durable.
    ///
    /// # Errors
    /// [`Stop::LeaseLost`], [`Stop::Store`], or [`Stop::Fail`] when a reservation does not fit or the state
    /// was changed by another turn; then everything but the reservation and the state is still pending.
    pub async fn barrier(&mut self) -> Result<(), Stop> {
        self.try_barrier().await.map_err(Stop::from)?;
        self.deadline.check().map_err(Stop::from)
    }

    /// Stops the turn before the next phase when the worker drains or the job is paused. Directly after a
    /// barrier it is exact: a pause that was acknowledged before the barrier is known.
    ///
    /// # Errors
    /// [`Stop::Drain`].
    pub fn unless_draining(&self) -> Result<(), Stop> {
        if self.draining.is_cancelled() { Err(Stop::Drain) } else { Ok(()) }
    }

    /// Runs a barrier whose refusal the caller may handle.
    ///
    /// # Errors
    /// As [`Turn::barrier`].
    pub async fn try_barrier(&mut self) -> Result<(), LedgerError> {
        let write = self.take_pending();
        // Only a payment or a commit of state can be refused with the lease still held; then the rest must
        // not be lost.
        let pays = match write.budget {
            Some(BudgetMove::Settle { .. }) => false,
            Some(BudgetMove::Reserve { .. }) => write.charge.is_some() || self.budget.limit.is_some(),
            None => write.charge.is_some(),
        };
        let kept = (pays || write.state.is_some())
            .then(|| Box::new(TurnWrite { budget: None, charge: None, state: None, ..write.clone() }));
        let (now, lease_ms) = (self.deps.clock.now(), self.deps.options.lease_ms());
        let deadline = Arc::clone(&self.deadline);
        let written = {
            let _writing = deadline.write();
            self.deps.ledger.checkpoint(&self.lease, write, now, lease_ms).await
        };
        match written {
            Ok(committed) => {
                self.budget = committed.budget;
                if committed.paused {
                    self.draining.cancel();
                }
                self.lease.expires_at = now.plus_ms(lease_ms);
                Ok(())
            }
            Err(error) => {
                *self.pending() = kept.map(|kept| *kept).unwrap_or_default();
                Err(error)
            }
        }
    }
}
