//! The interface to apalis: a backend of ephemeral tasks, which the claimer has already claimed, and the handler that runs them.
//!
//! Neither returns an error to apalis, because one error ends the worker and drops every handler in flight.

use super::leases::Slot;
use crate::state::signals::Signal;
use crate::turn;
use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::error::BoxDynError;
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use futures::FutureExt;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::{Mutex, mpsc};
use tower::layer::util::Identity;
use turnstone_store::Claim;

/// Boxed, because the envelope stays as long as the job runs.
type Taken = Option<Box<(Claim, Slot)>>;

/// A claimed job with its slot. It is taken once; apalis may clone the envelope around it.
#[derive(Clone)]
pub struct Assignment(Arc<std::sync::Mutex<Taken>>);

impl Assignment {
    /// Puts a claim and its slot into an envelope.
    pub fn new(claim: Claim, slot: Slot) -> Self {
        Self(Arc::new(std::sync::Mutex::new(Some(Box::new((claim, slot))))))
    }

    /// Takes them out; `None` the second time.
    fn take(&self) -> Taken {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The backend that passes the claimer's assignments to apalis.
pub struct LedgerBackend {
    assignments: Arc<Mutex<mpsc::Receiver<Assignment>>>,
    config: (),
}

impl LedgerBackend {
    /// Returns a backend over the claimer's channel.
    pub fn new(assignments: Arc<Mutex<mpsc::Receiver<Assignment>>>) -> Self {
        Self { assignments, config: () }
    }
}

impl Backend for LedgerBackend {
    type Task = Task<Assignment>;
    type Error = Infallible;

    fn poll_ready(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Self::Error>>> {
        // Only this worker loop holds the lock, and never across a poll.
        let Ok(mut assignments) = self.assignments.try_lock() else {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        Poll::Ready(ready!(assignments.poll_recv(cx)).map(|assignment| Ok(Task::new(assignment))))
    }

    fn poll_close(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for LedgerBackend {
    type Args = Assignment;
    type Id = String;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = Identity;

    fn config(&self) -> &Self::Config {
        &self.config
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Self::Layer {
        Identity::new()
    }
}

/// Runs one claimed job until its lease ends. This is the handler that apalis calls. It never returns an error: the store's
/// ledger, and not apalis, decides about another attempt.
pub async fn assigned(assignment: Assignment) -> Result<(), BoxDynError> {
    let Some((claim, slot)) = assignment.take().map(|taken| *taken) else { return Ok(()) };
    let (job, signals) = (claim.job.clone(), slot.signals());
    // A panic outside of the phases is caught here, so that `done` ends the watch: otherwise the lease would be extended for
    // ever. The future is boxed because apalis moves it several times before it runs.
    let running = Box::pin(turn::run_job(slot.deps(), claim, signals.clone()));
    let mut running = AssertUnwindSafe(running).catch_unwind();
    let ended = tokio::select! {
        biased;
        ended = &mut running => ended,
        _ = signals.any_of(&[Signal::Settling]) => {
            slot.free();
            running.await
        }
    };
    if ended.is_err() {
        tracing::error!(%job, "the worker panicked, which is a defect of Turnstone; the job resumes when its lease has expired");
    }
    slot.done();
    Ok(())
}
