//! The one writer: gathers what many callers hand it into one transaction (group commit).
//!
//! Everything that waits while a commit is under way goes into the next one, so nobody waits for a timer and the cost
//! of a commit is shared by all who arrive together. Answers are given only after the commit.

use super::definitions::Definitions;
use super::ops::turns::TurnStep;
use super::ops::{agents, cancel, claim, decide, leases, push, turns, upkeep};
use super::statement::failed;
use super::unit::Unit;
use crate::{
    CancelOutcome, Claim, ClaimRequest, Decision, DecisionOutcome, Doorbell, LedgerError, NewAgent, Pushed,
    Ring, StoreError,
};
use sqlx::sqlite::SqliteConnection;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use turnstone_domain::budget::Budget;
use turnstone_domain::{Ids, JobId, Lease, NewJob, ReviewId, Timestamp};

/// At most this many requests share a commit: the bound of a commit's duration.
const BATCH: usize = 512;

/// What the writer is asked to do.
pub(super) enum Request {
    Claim(ClaimRequest),
    Cancel(JobId, Timestamp),
    Decide(ReviewId, Decision),
    Register(Box<NewAgent>),
    PromoteDue { now: Timestamp, limit: usize },
    Reap { until: Timestamp, now: Timestamp, limit: usize },
    ExpireJobs { now: Timestamp, limit: usize },
    ExpireReviews { now: Timestamp, limit: usize },
    Extend { leases: Vec<Lease>, until: Timestamp },
    Release { leases: Vec<Lease>, now: Timestamp },
}

/// What the writer did.
pub(super) enum Answer {
    Claims(Vec<Claim>),
    Cancel(CancelOutcome),
    Decision(DecisionOutcome),
    Changed(bool),
    Count(usize),
    Lost(Vec<String>),
    Done,
}

type Reply<T> = oneshot::Sender<T>;

/// A request with the place for its answer. Turns and pushes are told apart because many of them share statements.
pub(super) enum Work {
    Turn(Box<TurnStep>, Reply<Result<Budget, LedgerError>>),
    Push(Vec<NewJob>, Reply<Result<Vec<Pushed>, StoreError>>),
    Other(Request, Reply<Result<Answer, StoreError>>),
}

enum Done {
    Turn(Result<Budget, LedgerError>),
    Push(Result<Vec<Pushed>, StoreError>),
    Other(Result<Answer, StoreError>),
}

/// Why a batch was not committed.
struct Refused {
    error: StoreError,
    /// Whether the transaction itself failed, and not the statements of one request.
    shared: bool,
}

/// The writer's connection and what it remembers between transactions.
pub(super) struct Writer {
    conn: SqliteConnection,
    ids: Arc<dyn Ids>,
    doorbell: Doorbell,
    definitions: Definitions,
}

impl Writer {
    pub(super) fn new(conn: SqliteConnection, ids: Arc<dyn Ids>, doorbell: Doorbell) -> Self {
        Self { conn, ids, doorbell, definitions: Definitions::default() }
    }

    /// Works until every sender is gone.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Work>) {
        let mut batch = Vec::with_capacity(BATCH);
        while inbox.recv_many(&mut batch, BATCH).await > 0 {
            self.commit(std::mem::take(&mut batch)).await;
        }
    }

    /// One transaction for all. If the database refuses it, each request gets a transaction of its own, so that a
    /// poisonous one fails only its own caller.
    async fn commit(&mut self, batch: Vec<Work>) {
        match self.transact(&batch).await {
            Ok((done, rings)) => {
                answer(batch, done);
                rings.into_iter().for_each(|ring| self.doorbell.ring(ring));
            }
            // Nobody's request is to blame for a transaction that cannot begin or end: trying each would only wait longer.
            Err(Refused { error, shared }) if shared || batch.len() == 1 => {
                tracing::error!(%error, requests = batch.len(), "the embedded database refused a write");
                let refused = batch.iter().map(|work| refusal(work, &error)).collect();
                answer(batch, refused);
            }
            Err(Refused { error, .. }) => {
                tracing::warn!(%error, requests = batch.len(), "a shared commit failed; its requests are tried one by one");
                for work in batch {
                    Box::pin(self.commit(vec![work])).await;
                }
            }
        }
    }

    async fn transact(&mut self, batch: &[Work]) -> Result<(Vec<Done>, Vec<Ring>), Refused> {
        let shared = |error| Refused { error, shared: true };
        let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut self.conn).await;
        begun.map_err(failed("begin a transaction")).map_err(shared)?;
        let outcome = match self.apply(batch).await {
            Ok(done) => {
                let committed = sqlx::query("COMMIT").execute(&mut self.conn).await;
                committed.map(|_| done).map_err(failed("commit")).map_err(shared)
            }
            Err(error) => Err(Refused { error, shared: false }),
        };
        if outcome.is_err() {
            // Best effort: after some errors SQLite has rolled back already.
            let _ = sqlx::query("ROLLBACK").execute(&mut self.conn).await;
        }
        outcome
    }

    async fn apply(&mut self, batch: &[Work]) -> Result<(Vec<Done>, Vec<Ring>), StoreError> {
        let mut rings = Vec::new();
        let (mut steps, mut pushes) = (Vec::new(), Vec::new());
        for work in batch {
            match work {
                Work::Turn(step, _) => steps.push(&**step),
                Work::Push(jobs, _) => pushes.push(jobs.as_slice()),
                Work::Other(..) => {}
            }
        }
        let mut unit = Unit::default();
        let stepped = if steps.is_empty() {
            Vec::new()
        } else {
            turns::apply(&mut self.conn, &mut unit, &steps).await?
        };
        rings.append(&mut unit.rings);
        let mut unit = Unit::default();
        let pushed = if pushes.is_empty() {
            Vec::new()
        } else {
            push::apply(&mut self.conn, &mut unit, &pushes).await?
        };
        rings.append(&mut unit.rings);
        let (mut stepped, mut pushed) = (stepped.into_iter(), pushed.into_iter());
        let mut done = Vec::with_capacity(batch.len());
        for work in batch {
            let closed = || StoreError::Closed;
            done.push(match work {
                Work::Turn(..) => Done::Turn(stepped.next().unwrap_or_else(|| Err(closed().into()))),
                Work::Push(..) => Done::Push(pushed.next().unwrap_or_else(|| Err(closed()))),
                Work::Other(request, _) => {
                    let mut unit = Unit::default();
                    let answer = self.other(&mut unit, request).await?;
                    rings.append(&mut unit.rings);
                    Done::Other(Ok(answer))
                }
            });
        }
        rings.dedup();
        Ok((done, rings))
    }

    async fn other(&mut self, unit: &mut Unit, request: &Request) -> Result<Answer, StoreError> {
        let conn = &mut self.conn;
        Ok(match request {
            Request::Claim(request) => {
                Answer::Claims(claim::apply(conn, unit, request, &mut self.definitions, &*self.ids).await?)
            }
            Request::Cancel(job, at) => Answer::Cancel(cancel::apply(conn, unit, job, *at).await?),
            Request::Decide(review, decision) => {
                Answer::Decision(decide::apply(conn, unit, review, decision).await?)
            }
            Request::Register(agent) => Answer::Changed(agents::register(conn, agent).await?),
            Request::PromoteDue { now, limit } => {
                Answer::Count(upkeep::promote_due(conn, unit, *now, *limit).await?)
            }
            Request::Reap { until, now, limit } => {
                Answer::Count(upkeep::reap(conn, unit, *until, *now, *limit).await?)
            }
            Request::ExpireJobs { now, limit } => {
                Answer::Count(upkeep::expire_jobs(conn, unit, *now, *limit).await?)
            }
            Request::ExpireReviews { now, limit } => {
                Answer::Count(upkeep::expire_reviews(conn, unit, *now, *limit).await?)
            }
            Request::Extend { leases, until } => Answer::Lost(leases::extend(conn, leases, *until).await?),
            Request::Release { leases, now } => {
                leases::release(conn, unit, leases, *now).await?;
                Answer::Done
            }
        })
    }
}

fn refusal(work: &Work, error: &StoreError) -> Done {
    match work {
        Work::Turn(..) => Done::Turn(Err(LedgerError::Store(error.clone()))),
        Work::Push(..) => Done::Push(Err(error.clone())),
        Work::Other(..) => Done::Other(Err(error.clone())),
    }
}

/// Gives the answers. A caller that has gone away does not want its own.
fn answer(batch: Vec<Work>, done: Vec<Done>) {
    for (work, done) in batch.into_iter().zip(done) {
        match (work, done) {
            (Work::Turn(_, reply), Done::Turn(done)) => drop(reply.send(done)),
            (Work::Push(_, reply), Done::Push(done)) => drop(reply.send(done)),
            (Work::Other(_, reply), Done::Other(done)) => drop(reply.send(done)),
            _ => tracing::error!("the writer mixed up its answers"),
        }
    }
}
