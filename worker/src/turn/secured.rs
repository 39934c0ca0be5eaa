//! The proof that a turn holds nothing that is paid for and not committed.

use super::state::Turn;
use super::stop::Stop;
use std::marker::PhantomData;
use turnstone_domain::JobError;
use turnstone_domain::budget::BudgetMove;
use turnstone_domain::error::FailureKind;

/// Everything that the turn has paid for is committed. Whatever leaves the process takes one of these: a kill while it waits
/// costs no answer (ADR 0008). It borrows the turn, so nothing is added to the turn meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Secured<'t>(PhantomData<&'t Turn>);

#[cfg(test)]
impl Secured<'static> {
    /// For tests of what takes one, without a turn.
    pub fn assumed() -> Self {
        Self(PhantomData)
    }
}

impl Turn {
    /// Returns the proof. [`Turn::secure`] commits what stands in its way.
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

    /// A barrier, if something that was paid for is not durable yet. It stands before everything that may take long or
    /// calls somebody, so that between a model's answer and its commit lies processor time alone (ADR 0008).
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
