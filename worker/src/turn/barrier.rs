//! Barriers: a turn waits until its writes are durable.
//!
//! A turn collects its writes in memory ([`Turn::pending`]). A barrier commits all of them in one transaction and extends
//! the lease. There are three entries:
//!
//! - [`Turn::barrier`] commits everything. Call it before an effect that must not happen twice, and after it.
//! - [`Turn::secure`] commits only when an answer was paid for and is not durable. Call it before anything that may wait.
//! - [`Turn::try_barrier`] returns the ledger's refusal of a payment or of a state change to the caller.
//!
//! [`Secured`] is the proof that nothing paid is left to commit. Whatever leaves the process takes one as an argument.

use super::state::Turn;
use super::stop::Stop;
use std::marker::PhantomData;
use std::sync::Arc;
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, TurnWrite};
use turnstone_store::LedgerError;

/// The proof that every answer that the turn has paid for is committed. Every function that calls another process takes
/// one, so a kill during that call loses no answer (ADR 0008). It borrows the turn, so the turn cannot buy anything
/// while the proof is in use.
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
    /// Returns the proof. Call [`Turn::secure`] before it, which commits a paid answer.
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
        Ok(Secured(PhantomData))
    }

    /// Runs a barrier, if a model's answer that was paid for is not durable yet. Call it before everything that may take
    /// long or leaves the process. So between a model's answer and its commit there is only processor time
    /// (ADR 0008).
    ///
    /// # Errors
    /// As [`Turn::barrier`].
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
        let (now, lease_ms) = (self.deps.clock.now(), self.deps.options.lease_ms());
        let deadline = Arc::clone(&self.deadline);
        let written = {
            let _writing = deadline.write();
            self.deps.ledger.checkpoint(&self.lease, write, now, lease_ms).await
        };
        match written {
            Ok(committed) => {
                self.budget = committed.budget;
                // A paused job stops as if the worker drained.
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
