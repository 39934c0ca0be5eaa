//! The requests of callers, as the writer handles them.

use super::audit::AuditNote;
use super::jobs::Reported;
use super::ops::turns::TurnStep;
use super::session::Durability;
use super::writer::Transaction;
use crate::{Committed, LedgerError, Pushed, RemoteOutcome, Report, StoreError};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;
use turnstone_domain::NewJob;

/// Applies a write with these arguments. It may run several times: nothing that it does outlives its transaction.
pub(super) type Apply<A, T> = for<'a> fn(&'a mut Transaction, &'a A) -> BoxFuture<'a, Result<T, StoreError>>;

/// A request of a caller, with the answer that the caller receives after the commit.
pub(super) struct Request<A, T, E = StoreError> {
    pub asked: A,
    pub answer: Option<Result<T, E>>,
    pub reply: oneshot::Sender<Result<T, E>>,
}

/// A request of any type, as the writer handles it.
pub(super) trait Pending: Send {
    /// Returns whether the caller has gone away. A request that is not written by then never is.
    fn is_abandoned(&self) -> bool;
    /// Gives the answer, after the commit. A caller that has gone away does not receive it.
    fn give(self: Box<Self>);
    /// Gives an error instead.
    fn refuse(self: Box<Self>, error: &StoreError);
}

impl<A: Send, T: Send, E: From<StoreError> + Send> Pending for Request<A, T, E> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn give(self: Box<Self>) {
        let _ = self.reply.send(self.answer.unwrap_or_else(|| Err(StoreError::Closed.into())));
    }

    fn refuse(self: Box<Self>, error: &StoreError) {
        let _ = self.reply.send(Err(error.clone().into()));
    }
}

/// A write whose arguments and output only its caller knows.
pub(super) struct Write<A, T> {
    pub request: Request<A, T>,
    pub apply: Apply<A, T>,
    pub durability: Durability,
    pub urgent: bool,
    pub note: Option<Arc<AuditNote>>,
}

/// A write that shares no statement with others.
pub(super) trait Alone: Pending {
    /// Applies it and keeps its answer.
    fn apply<'a>(&'a mut self, tx: &'a mut Transaction) -> BoxFuture<'a, Result<(), StoreError>>;
    /// Returns when it has to outlive a crash, unless it writes an event.
    fn durability(&self) -> Durability;
    /// Returns whether it is short work under a lease.
    fn is_urgent(&self) -> bool;
    /// Returns the facts for its audit entry, if it is audited.
    fn note(&self) -> Option<&AuditNote>;
}

impl<A: Send, T: Send> Pending for Write<A, T> {
    fn is_abandoned(&self) -> bool {
        self.request.is_abandoned()
    }

    fn give(self: Box<Self>) {
        Box::new(self.request).give();
    }

    fn refuse(self: Box<Self>, error: &StoreError) {
        Box::new(self.request).refuse(error);
    }
}

impl<A: Send + Sync, T: Send> Alone for Write<A, T> {
    fn apply<'a>(&'a mut self, tx: &'a mut Transaction) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.request.answer = Some(Ok((self.apply)(tx, &self.request.asked).await?));
            Ok(())
        })
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn is_urgent(&self) -> bool {
        self.urgent
    }

    fn note(&self) -> Option<&AuditNote> {
        self.note.as_deref()
    }
}

/// The requests by how they join their like: turns, pushes and reports each share statements.
pub(super) enum Work {
    Turn(Box<Request<TurnStep, Committed, LedgerError>>),
    Push(Box<Request<Vec<NewJob>, Vec<Pushed>>>),
    Report(Box<Request<Report, RemoteOutcome<Reported>>>),
    Alone(Box<dyn Alone>),
}

impl Work {
    pub(super) fn pending(&self) -> &dyn Pending {
        match self {
            Self::Turn(request) => &**request,
            Self::Push(request) => &**request,
            Self::Report(request) => &**request,
            Self::Alone(write) => &**write,
        }
    }

    /// Returns how much it adds to a commit, in turns or jobs. A worker over HTTP waits for its report before it does anything
    /// else, and few of them wait at one time: a report has the weight of several turns.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Push(request) => request.asked.len(),
            Self::Report(_) => 8,
            Self::Turn(_) | Self::Alone(_) => 1,
        }
    }

    pub(super) fn durability(&self) -> Durability {
        match self {
            Self::Alone(write) => write.durability(),
            Self::Turn(_) | Self::Push(_) | Self::Report(_) => Durability::AtOnce,
        }
    }

    pub(super) fn is_urgent(&self) -> bool {
        match self {
            Self::Alone(write) => write.is_urgent(),
            Self::Turn(_) | Self::Push(_) | Self::Report(_) => true,
        }
    }

    pub(super) fn into_pending(self) -> Box<dyn Pending> {
        match self {
            Self::Turn(request) => request,
            Self::Push(request) => request,
            Self::Report(request) => request,
            Self::Alone(write) => write,
        }
    }
}

/// A request and when it was made.
pub(super) struct Asked {
    pub work: Work,
    pub at: Instant,
}
