//! The store as an apalis backend: ephemeral tasks that the claimer has already claimed.
//!
//! It never returns an error to apalis, because one error ends the worker and drops every handler in flight.

use super::leases::Slot;
use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use std::convert::Infallible;
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
    pub fn take(&self) -> Taken {
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
