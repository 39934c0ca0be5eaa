//! The write path: how requests of callers reach the writer of a process, which gathers them into one transaction (group
//! commit).
//!
//! Requests that arrive during a commit go into the next one, so no request waits for a timer. The cost of a commit
//! is shared by all requests in it. Answers are given only after the commit.
//!
//! A database that does not answer is tried again with growing pauses. Turns wait for it as long as it takes,
//! because what they carry has been paid for; all others receive an error after [`PATIENCE`]. A commit whose
//! outcome is unknown is looked up before anything is tried again, so nothing is committed twice.

#[cfg(test)]
mod tests;

use super::Engine;
use super::audit as audits;
use super::definitions::Definitions;
use super::held::{HeldJobs, Learnt};
use super::inbox::Inbox;
use super::jobs::Reported;
use super::limited::LimitedQueues;
use super::ops::turns::{self, TurnEnd, TurnStep};
use super::ops::{audit, delegations, inputs, leases, push, remote, workers, workflows};
use super::refusals::Refusals;
use super::request::{Alone, Apply, Asked, Request, Work, Write};
use super::session::{CommitError, Durability, Session};
use super::unit::Unit;
use crate::{
    Claim, ClaimRequest, Committed, Directive, Doorbell, Ledger, LedgerError, LedgerReads, Pushed,
    RemoteOutcome, Report, Ring, StoreError, WorkerBeat,
};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use std::collections::BTreeSet;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use turnstone_domain::audit::AuditEntry;
use turnstone_domain::{Ids, Lease, NewJob, Settlement, Timestamp, TurnWrite};

/// How long a request that is not a turn waits for a database that does not answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest pause before a database that takes no writes is tried again; up to as much again is added at random. Writes go
/// on within a second of the database taking them.
const LONGEST_PAUSE: Duration = Duration::from_millis(450);

/// The transaction of the writer, and what the writer remembers between transactions.
pub(super) struct Transaction {
    pub session: Session,
    pub unit: Unit,
    pub ids: Arc<dyn Ids>,
    pub definitions: Definitions,
    pub limited: Arc<LimitedQueues>,
    /// The hash of what the current write replaces, for its audit entry.
    pub before: Option<String>,
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
        self.write_as(Durability::AtOnce, false, requested, apply).await
    }

    /// The same for a short write under a lease: an answer that is late is looked up while the lease lasts.
    pub(super) async fn write_urgently<A, T>(&self, requested: A, apply: Apply<A, T>) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.write_as(Durability::AtOnce, true, requested, apply).await
    }

    /// The same for a write that need not outlive a crash at once, or that is urgent.
    pub(super) async fn write_as<A, T>(
        &self,
        durability: Durability,
        urgent: bool,
        requested: A,
        apply: Apply<A, T>,
    ) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.ask(requested, |request| {
            let note = audits::current();
            Work::Alone(Box::new(Write { request: *request, apply, durability, urgent, note }))
        })
        .await
    }
}

#[async_trait]
impl Ledger for Engine {
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.claim_jobs(request).await
    }

    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Committed, LedgerError> {
        let end = TurnEnd::Extend(now.plus_ms(lease_ms));
        self.ask(TurnStep { lease: lease.clone(), write, now, end }, Work::Turn).await
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let end = TurnEnd::Settle(Box::new(settlement));
        self.ask(TurnStep { lease: lease.clone(), write, now, end }, Work::Turn).await.map(|_| ())
    }

    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        self.write_urgently((leases.to_vec(), now.plus_ms(lease_ms)), |tx, (leases, until)| {
            Box::pin(leases::extend(&mut tx.session, leases, *until))
        })
        .await
    }

    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError> {
        self.write_urgently((leases.to_vec(), now), |tx, (leases, now)| {
            Box::pin(leases::release(&mut tx.session, &mut tx.unit, leases, *now))
        })
        .await
    }

    async fn beat(&self, beat: WorkerBeat, silent_ms: i64) -> Result<Option<Directive>, StoreError> {
        self.write_urgently((beat, silent_ms), |tx, (beat, silent_ms)| {
            Box::pin(workers::beat(&mut tx.session, beat, *silent_ms))
        })
        .await?
    }

    async fn leave(&self, name: &str, instance: &str) -> Result<(), StoreError> {
        self.write_urgently((name.to_owned(), instance.to_owned()), |tx, (name, instance)| {
            Box::pin(workers::leave(&mut tx.session, name, instance))
        })
        .await
    }

    fn reads(&self) -> &dyn LedgerReads {
        self
    }
}

/// The results of a transaction.
struct WriteOutcome {
    rings: Vec<Ring>,
    learnt: Vec<Learnt>,
    audited: Vec<AuditEntry>,
}

impl WriteOutcome {
    /// Returns true when a reader may see something of it that must not be lost.
    fn is_visible(&self) -> bool {
        !self.audited.is_empty() || self.rings.iter().any(|ring| matches!(ring, Ring::Events(_)))
    }
}

/// The work that the units of a transaction leave: in it, or after it.
#[derive(Default)]
struct Yielded {
    rings: Vec<Ring>,
    learnt: Vec<Learnt>,
    ended: Vec<workflows::Ended>,
    tree_ends: Vec<delegations::TreeEnd>,
    freed: Vec<inputs::Freed>,
    left: BTreeSet<String>,
}

impl Yielded {
    fn take(&mut self, mut unit: Unit) {
        self.rings.append(&mut unit.rings);
        self.learnt.append(&mut unit.learnt());
        self.ended.append(&mut unit.ended);
        self.tree_ends.append(&mut unit.tree_ends);
        self.freed.append(&mut unit.freed);
        self.left.append(&mut unit.left);
    }

    fn is_settled(&self) -> bool {
        self.ended.is_empty() && self.tree_ends.is_empty() && self.freed.is_empty()
    }
}

/// Why a batch was not committed.
struct Refused {
    error: StoreError,
    /// True when the transaction itself failed, and not the statements of one request.
    shared: bool,
}

/// The parts that a writer shares with the rest of the process.
pub(super) struct Shared {
    pub doorbell: Doorbell,
    pub held: Arc<HeldJobs>,
    pub refusals: Arc<Refusals>,
}

/// The writer's transaction and what it shares with the rest of the process.
pub(super) struct Writer {
    tx: Transaction,
    shared: Shared,
}

impl Writer {
    pub(super) fn new(
        session: Session,
        ids: Arc<dyn Ids>,
        limited: Arc<LimitedQueues>,
        shared: Shared,
    ) -> Self {
        let (unit, definitions) = (Unit::default(), Definitions::default());
        Self { tx: Transaction { session, unit, ids, definitions, limited, before: None }, shared }
    }

    /// Works until every sender is gone.
    pub(super) async fn run(mut self, inbox: Arc<Inbox>) {
        loop {
            let batch = inbox.take().await;
            if batch.is_empty() {
                return;
            }
            self.commit(batch, true).await;
            inbox.done();
        }
    }

    /// Commits all in one transaction, tried until the database answers. While it is `trusting`, it relies on what this process
    /// knows of jobs instead of reading them, and enqueues jobs without a look at what is there.
    async fn commit(&mut self, mut batch: Vec<Asked>, mut trusting: bool) {
        let mut pauses = pauses().with_jitter().build();
        let mut silent = false;
        loop {
            batch.retain(|requested| !requested.work.pending().is_abandoned());
            if batch.is_empty() {
                return;
            }
            let refused = match self.transact(&mut batch, trusting).await {
                Ok(outcome) => {
                    tell_of_recovery(silent);
                    self.shared.refusals.succeeded();
                    return self.conclude(batch, outcome);
                }
                Err(refused) => refused,
            };
            match refused {
                Refused { error: error @ StoreError::Unavailable { .. }, .. } => {
                    tell_of_silence(silent, &error, batch.len());
                    self.shared.refusals.failed(&error);
                    silent = true;
                    batch = tell_the_impatient(batch, &error);
                    tokio::time::sleep(pauses.next().unwrap_or(PATIENCE)).await;
                }
                // What was known of a job is no longer so: it is read anew.
                Refused { shared: false, .. } if trusting => trusting = false,
                refused => return self.refuse(batch, refused).await,
            }
        }
    }

    /// Answers after a commit.
    fn conclude(&self, batch: Vec<Asked>, outcome: WriteOutcome) {
        self.shared.held.learn(outcome.learnt);
        outcome.audited.iter().for_each(audits::publish);
        // First, so that a caller that has its answer finds all parts notified.
        outcome.rings.into_iter().for_each(|ring| self.shared.doorbell.ring(ring));
        batch.into_iter().for_each(|requested| requested.work.into_pending().give());
    }

    /// Tries both halves of a batch by themselves, so that one poisonous request fails only its own caller. No request is to
    /// blame for a transaction that cannot begin or end: trying the halves would only wait longer.
    async fn refuse(&mut self, mut batch: Vec<Asked>, Refused { error, shared }: Refused) {
        if shared || batch.len() == 1 {
            tracing::error!(%error, requests = batch.len(), "the database refused a write");
            return refuse(batch, &error);
        }
        tracing::warn!(%error, requests = batch.len(), "a shared commit failed; its halves are tried by themselves");
        let second = batch.split_off(batch.len() / 2);
        for half in [batch, second] {
            Box::pin(self.commit(half, false)).await;
        }
    }

    async fn transact(&mut self, batch: &mut [Asked], trusting: bool) -> Result<WriteOutcome, Refused> {
        let shared = |error| Refused { error, shared: true };
        let mut durability = self.durability(batch);
        self.tx.session.hurry(batch.iter().all(|asked| asked.work.is_urgent()));
        let mut done = loop {
            self.tx.session.begin(durability).await.map_err(shared)?;
            match self.apply(batch, trusting).await {
                // A reader may have seen the event before the crash.
                Ok(done) if durability == Durability::WithTheNext && done.is_visible() => {
                    self.tx.session.rollback().await;
                    durability = Durability::AtOnce;
                }
                Ok(done) => break done,
                Err(error) => {
                    self.tx.session.rollback().await;
                    return Err(Refused { error, shared: false });
                }
            }
        };
        if self.tx.session.is_embedded() {
            // Claims go through this writer, so they are made after this commit. A worker wakes up while the disk works.
            let available = done.rings.extract_if(.., |ring| *ring == Ring::Available);
            available.for_each(|ring| self.shared.doorbell.ring(ring));
        }
        match self.tx.session.commit().await {
            Ok(()) => Ok(done),
            Err(CommitError::Refused(error)) => Err(shared(error)),
            Err(CommitError::Failed(error)) => Err(Refused { error, shared: false }),
            Err(CommitError::Unknown(error)) => {
                tracing::warn!(%error, requests = batch.len(), "the connection broke during a commit; its outcome is looked up");
                if self.was_committed().await { Ok(done) } else { Err(shared(error)) }
            }
        }
    }

    /// Returns when a batch has to outlive a crash: with the next commit if that does for each of its requests.
    fn durability(&self, batch: &[Asked]) -> Durability {
        let defers = |asked: &Asked| asked.work.durability() == Durability::WithTheNext;
        match self.tx.session.is_embedded() && batch.iter().all(defers) {
            true => Durability::WithTheNext,
            false => Durability::AtOnce,
        }
    }

    /// Asks until the database knows.
    async fn was_committed(&mut self) -> bool {
        for pause in pauses().build() {
            match self.tx.session.outcome().await {
                Ok(committed) => return committed,
                Err(error) => tracing::debug!(%error, "the outcome of a commit is not known yet"),
            }
            tokio::time::sleep(pause).await;
        }
        false
    }

    async fn apply(&mut self, batch: &mut [Asked], trusting: bool) -> Result<WriteOutcome, StoreError> {
        let known = trusting.then_some(&*self.shared.held);
        let WriteBatch { turns, pushes, reports, alone } = WriteBatch::of(batch);
        let mut yielded = Yielded::default();
        let tx = &mut self.tx;
        tx.unit = Unit::default();
        if !turns.is_empty() {
            let steps: Vec<_> = turns.iter().map(|turn| &turn.asked).collect();
            let answers = turns::apply(&mut tx.session, &mut tx.unit, &steps, known).await?;
            keep(turns, answers);
            yielded.take(take(&mut tx.unit));
        }
        if !pushes.is_empty() {
            let jobs: Vec<_> = pushes.iter().map(|push| push.asked.as_slice()).collect();
            let unread = match trusting {
                true => push::apply_unread(&mut tx.session, &mut tx.unit, &jobs, &tx.limited).await?,
                false => None,
            };
            let answers = match unread {
                Some(answers) => answers,
                None => push::apply(&mut tx.session, &mut tx.unit, &jobs, Some(&tx.limited)).await?,
            };
            keep(pushes, answers);
            yielded.take(take(&mut tx.unit));
        }
        if !reports.is_empty() {
            let requested: Vec<_> = reports.iter().map(|report| &report.asked).collect();
            let answers = remote::report(&mut tx.session, &mut tx.unit, &requested, known).await?;
            keep(reports, answers.into_iter().map(Ok));
            yielded.take(take(&mut tx.unit));
        }
        let mut audited = Vec::new();
        for write in alone {
            let (changes, _) = (tx.session.changes(), tx.before.take());
            write.apply(tx).await?;
            yielded.take(take(&mut tx.unit));
            if let Some(note) = write.note().filter(|_| tx.session.changes() > changes) {
                audited.push(note.entry("done", tx.before.take()));
            }
        }
        // What is enqueued may replace a step of another workflow; what is cancelled may have children of its own.
        while !yielded.is_settled() {
            let (ended, tree_ends) = (take(&mut yielded.ended), take(&mut yielded.tree_ends));
            let freed = take(&mut yielded.freed);
            delegations::advance(&mut tx.session, &mut tx.unit, tree_ends).await?;
            yielded.take(take(&mut tx.unit));
            inputs::advance(&mut tx.session, &mut tx.unit, freed).await?;
            yielded.take(take(&mut tx.unit));
            if !ended.is_empty() {
                workflows::advance(&mut tx.session, &mut tx.unit, ended).await?;
                yielded.take(take(&mut tx.unit));
            }
        }
        if !audited.is_empty() {
            audited = audit::append(&mut tx.session, audited).await?;
        }
        let Yielded { mut rings, learnt, left, .. } = yielded;
        if self.tx.limited.any_of(&left) {
            rings.push(Ring::Available);
        }
        rings.dedup();
        Ok(WriteOutcome { rings, learnt, audited })
    }
}

/// The requests of a batch by how they join their like.
#[derive(Default)]
struct WriteBatch<'a> {
    turns: Vec<&'a mut Request<TurnStep, Committed, LedgerError>>,
    pushes: Vec<&'a mut Request<Vec<NewJob>, Vec<Pushed>>>,
    reports: Vec<&'a mut Request<Report, RemoteOutcome<Reported>>>,
    alone: Vec<&'a mut dyn Alone>,
}

impl<'a> WriteBatch<'a> {
    fn of(batch: &'a mut [Asked]) -> Self {
        let mut parted = Self::default();
        for requested in batch {
            match &mut requested.work {
                Work::Turn(turn) => parted.turns.push(turn),
                Work::Push(push) => parted.pushes.push(push),
                Work::Report(report) => parted.reports.push(report),
                Work::Alone(write) => parted.alone.push(&mut **write),
            }
        }
        parted
    }
}

/// Keeps the answers to requests for after the commit.
fn keep<A, T, E>(requests: Vec<&mut Request<A, T, E>>, answers: impl IntoIterator<Item = Result<T, E>>) {
    for (request, answer) in requests.into_iter().zip(answers) {
        request.answer = Some(answer);
    }
}

/// Gives an error to the callers of requests.
fn refuse(batch: Vec<Asked>, error: &StoreError) {
    batch.into_iter().for_each(|requested| requested.work.into_pending().refuse(error));
}

/// The pauses between attempts.
fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(LONGEST_PAUSE)
        .without_max_times()
}

fn tell_of_silence(reported: bool, error: &StoreError, requests: usize) {
    if !reported {
        tracing::warn!(%error, requests, "the database does not answer; writes are tried again until it does");
    }
}

fn tell_of_recovery(reported: bool) {
    if reported {
        tracing::info!("the database answers again");
    }
}

/// Fails the requests that have waited too long for the database; returns the others.
fn tell_the_impatient(batch: Vec<Asked>, error: &StoreError) -> Vec<Asked> {
    let (waiting, gone): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .partition(|requested| matches!(requested.work, Work::Turn(..)) || requested.at.elapsed() < PATIENCE);
    refuse(gone, error);
    waiting
}
