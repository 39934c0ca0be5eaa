//! The requests to the writer, and the channels on which their answers wait for the commit.

use super::Engine;
use super::audit::{self, AuditNote};
use super::definitions::Definitions;
use super::jobs::Reported;
use super::ops::turns::TurnStep;
use super::session::Session;
use super::unit::Unit;
use crate::{Committed, LedgerError, Pushed, RemoteOutcome, Report, StoreError};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;
use turnstone_domain::{Ids, NewJob};

/// The transaction of the writer, and what the writer remembers between transactions.
pub(super) struct Transaction {
    pub session: Session,
    pub unit: Unit,
    pub ids: Arc<dyn Ids>,
    pub definitions: Definitions,
    /// The hash of what the current write replaces, for its audit entry.
    pub before: Option<String>,
}

/// Applies a write with these arguments. It may run several times: nothing that it does outlives its transaction.
pub(super) type Apply<A, T> = for<'a> fn(&'a mut Transaction, &'a A) -> BoxFuture<'a, Result<T, StoreError>>;

/// A request of a caller, with the answer that the caller receives after the commit.
pub(super) struct Request<A, T, E = StoreError> {
    pub asked: A,
    pub answer: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
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
struct Write<A, T> {
    request: Request<A, T>,
    apply: Apply<A, T>,
    note: Option<Arc<AuditNote>>,
}

/// A write that shares no statement with others.
pub(super) trait Alone: Pending {
    /// Applies it and keeps its answer.
    fn apply<'a>(&'a mut self, tx: &'a mut Transaction) -> BoxFuture<'a, Result<(), StoreError>>;
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

impl Engine {
    /// Hands a request to the writer and waits for its answer. The future holds no copy of the request.
    pub(super) fn ask<A, T, E: From<StoreError>, W: FnOnce(Box<Request<A, T, E>>) -> Work>(
        &self,
        requested: A,
        work: W,
    ) -> impl Future<Output = Result<T, E>> {
        let (reply, answer) = oneshot::channel();
        let work = work(Box::new(Request { asked: requested, answer: None, reply }));
        let requested = Asked { work, at: Instant::now() };
        async move {
            self.writer.send(requested).await.map_err(|_| StoreError::Closed)?;
            answer.await.map_err(|_| StoreError::Closed)?
        }
    }

    /// Applies a write in the next transaction and returns its output after the commit.
    pub(super) async fn write<A, T>(&self, requested: A, apply: Apply<A, T>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.ask(requested, |request| {
            Work::Alone(Box::new(Write { request: *request, apply, note: audit::current() }))
        })
        .await
    }
}
