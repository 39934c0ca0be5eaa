//! The proof that every answer which the turn has paid for is committed.

use super::state::Turn;
use super::stop::Stop;
use std::marker::PhantomData;
use turnstone_domain::JobError;
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::error::FailureKind;

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
}
