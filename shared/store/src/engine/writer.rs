//! The writer of a process: gathers what many callers hand it into one transaction (group commit).
//!
//! Everything that waits while a commit is under way goes into the next one, so nobody waits for a timer and the cost
//! of a commit is shared by all who arrive together. Answers are given only after the commit.
//!
//! A database that does not answer is tried again with growing pauses. Turns wait for it as long as it takes, because
//! what they carry has been paid for; all others are told after [`PATIENCE`]. A commit whose outcome is unknown is
//! looked up before anything is tried again, so nothing is committed twice.

use super::definitions::Definitions;
use super::held::{Held, Learnt};
use super::limited::LimitedQueues;
use super::ops::turns::TurnStep;
use super::ops::{
    agents, answer, breakers, budgets, cancel, claim, control, credentials, crons, delegations, elsewhere,
    fork, import, inputs, leader, leases, operate, prune, push, queues, remote, reviews, runs, schemas,
    statistics, tenants, time_out, turns, upkeep, webhooks, workers, workflows,
};
use super::rows::JobRow;
use super::session::{CommitError, Session};
use super::unit::Unit;
use crate::elsewhere::CallOff;
use crate::{
    AgentRemoval, AgentRemoved, AnswerOutcome, CancelOutcome, Committed, Decision, DecisionOutcome, Doorbell,
    Duty, ForkRefusal, ImportRefusal, LedgerError, NewAgent, NewAnswer, NewFork, Pushed, RemoteOutcome,
    Report, Ring, StoreError, Term, WorkerBeat,
};
use backon::{BackoffBuilder, ExponentialBuilder};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::{Ids, JobId, Lease, NewJob, ReviewId, Timestamp};

/// At most this many requests share a commit: the bound of a commit's duration.
const BATCH: usize = 512;
/// How long a request that is not a turn waits for a database that does not answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What the writer is asked to do.
pub(super) enum Request {
    Claim(claim::Ask),
    Cancel(JobId, Option<String>, Timestamp),
    Decide(ReviewId, Decision),
    Answer(Box<NewAnswer>),
    Register(Box<NewAgent>),
    RemoveAgent(AgentRemoval),
    Lead { holder: String, lease_ms: i64, now: Timestamp },
    Resign(Term),
    Perform { duty: Duty, term: Term, now: Timestamp, limit: usize },
    ReleaseAll { now: Timestamp },
    Beat { beat: Box<WorkerBeat>, silent_ms: i64 },
    Leave { name: String, instance: String },
    Extend { leases: Vec<Lease>, until: Timestamp },
    Release { leases: Vec<Lease>, now: Timestamp },
    Remote(remote::Request),
    Queues(queues::Request),
    Operate(operate::Request),
    Workflows(workflows::Request),
    Crons(crons::Request),
    Schemas(schemas::Request),
    Tenants(tenants::Request),
    Webhooks(Box<webhooks::Request>),
    Control(control::Request),
    Fork(Box<NewFork>),
    Import(Box<(EngagementRecord, Timestamp)>),
    Breakers(breakers::Request),
    Runs(runs::Request),
    Budgets(Box<budgets::Request>),
    Credentials(Box<credentials::Request>),
    Elsewhere(elsewhere::Request),
    Idempotency(Box<push::idempotency::Request>),
}

/// What the writer did.
pub(super) enum Answer {
    Claims(claim::Claimed),
    Cancel(CancelOutcome),
    Decision(DecisionOutcome),
    Answered(AnswerOutcome),
    Changed(bool),
    Removed(AgentRemoved),
    Term(Option<Term>),
    Count(usize),
    Lost(Vec<String>),
    Done,
    Remote(remote::Answer),
    Queues(queues::Answer),
    Operate(operate::Answer),
    Workflows(workflows::Answer),
    Crons(crons::Answer),
    Schemas(schemas::Answer),
    Tenants(tenants::Answer),
    Webhooks(webhooks::Answer),
    Control(control::Answer),
    Forked(Result<(), ForkRefusal>),
    Imported(Result<(), ImportRefusal>),
    Breakers(breakers::Answer),
    Runs(runs::Answer),
    Budgets(budgets::Answer),
    CallOffs(Vec<CallOff>),
    Idempotency(push::idempotency::Answer),
    /// Refused for a reason that is this caller's alone; nothing was written for it.
    Refused(StoreError),
}

type Reply<T> = oneshot::Sender<T>;

/// A request with the place for its answer, and when it was made. Turns, pushes and reports are told apart because many of
/// them share statements.
pub(super) struct Asked {
    pub work: Work,
    pub at: Instant,
}

/// See [`Asked`].
pub(super) enum Work {
    Turn(Box<TurnStep>, Reply<Result<Committed, LedgerError>>),
    Push(Vec<NewJob>, Reply<Result<Vec<Pushed>, StoreError>>),
    Report(Box<Report>, Reply<Result<RemoteOutcome<JobRow>, StoreError>>),
    Other(Request, Reply<Result<Answer, StoreError>>),
}

enum Done {
    Turn(Result<Committed, LedgerError>),
    Push(Result<Vec<Pushed>, StoreError>),
    Report(Box<Result<RemoteOutcome<JobRow>, StoreError>>),
    Other(Result<Answer, StoreError>),
}

impl Work {
    /// Whether nobody waits for the answer any more. What has not been written then never is.
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Turn(_, reply) => reply.is_closed(),
            Self::Push(_, reply) => reply.is_closed(),
            Self::Report(_, reply) => reply.is_closed(),
            Self::Other(_, reply) => reply.is_closed(),
        }
    }
}

/// What a transaction did.
struct Outcome {
    done: Vec<Done>,
    rings: Vec<Ring>,
    learnt: Vec<Learnt>,
}

/// What the units of a transaction leave to be done: in it, or after it.
#[derive(Default)]
struct Yielded {
    rings: Vec<Ring>,
    learnt: Vec<Learnt>,
    ended: Vec<workflows::Ended>,
    kin: Vec<delegations::Kin>,
    freed: Vec<inputs::Freed>,
    left: BTreeSet<String>,
}

impl Yielded {
    fn take(&mut self, mut unit: Unit) {
        self.rings.append(&mut unit.rings);
        self.learnt.append(&mut unit.learnt());
        self.ended.append(&mut unit.ended);
        self.kin.append(&mut unit.kin);
        self.freed.append(&mut unit.freed);
        self.left.append(&mut unit.left);
    }

    fn is_settled(&self) -> bool {
        self.ended.is_empty() && self.kin.is_empty() && self.freed.is_empty()
    }
}

/// Why a batch was not committed.
struct Refused {
    error: StoreError,
    /// Whether the transaction itself failed, and not the statements of one request.
    shared: bool,
}

/// Where requests wait; several writers may share it.
pub(super) type Inbox = Arc<Mutex<mpsc::Receiver<Asked>>>;

/// The writer's connection and what it remembers between transactions.
pub(super) struct Writer<S> {
    session: S,
    ids: Arc<dyn Ids>,
    doorbell: Doorbell,
    definitions: Definitions,
    held: Arc<Held>,
    limited: Arc<LimitedQueues>,
}

impl<S: Session> Writer<S> {
    pub(super) fn new(
        session: S,
        ids: Arc<dyn Ids>,
        doorbell: Doorbell,
        held: Arc<Held>,
        limited: Arc<LimitedQueues>,
    ) -> Self {
        Self { session, ids, doorbell, definitions: Definitions::default(), held, limited }
    }

    /// Works until every sender is gone.
    pub(super) async fn run(mut self, inbox: Inbox) {
        loop {
            let mut batch = Vec::new();
            if inbox.lock().await.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
            self.commit(batch).await;
        }
    }

    /// One transaction for all, tried until the database answers.
    async fn commit(&mut self, mut batch: Vec<Asked>) {
        let mut pauses = pauses().with_jitter().build();
        let (mut silent, mut trusting) = (false, true);
        loop {
            batch.retain(|asked| !asked.work.is_abandoned());
            if batch.is_empty() {
                return;
            }
            let refused = match self.transact(&batch, trusting).await {
                Ok(outcome) => {
                    tell_of_recovery(silent);
                    return self.conclude(batch, outcome);
                }
                Err(refused) => refused,
            };
            match refused {
                Refused { error: error @ StoreError::Unavailable { .. }, .. } => {
                    tell_of_silence(silent, &error, batch.len());
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
    fn conclude(&self, batch: Vec<Asked>, outcome: Outcome) {
        self.held.learn(outcome.learnt);
        give(batch, outcome.done);
        outcome.rings.into_iter().for_each(|ring| self.doorbell.ring(ring));
    }

    /// Gives each request a transaction of its own, so that a poisonous one fails only its own caller. Nobody's
    /// request is to blame for a transaction that cannot begin or end: trying each would only wait longer.
    async fn refuse(&mut self, batch: Vec<Asked>, Refused { error, shared }: Refused) {
        if shared || batch.len() == 1 {
            tracing::error!(%error, requests = batch.len(), "the database refused a write");
            let refused = batch.iter().map(|asked| refusal(&asked.work, &error)).collect();
            return give(batch, refused);
        }
        tracing::warn!(%error, requests = batch.len(), "a shared commit failed; its requests are tried one by one");
        for asked in batch {
            Box::pin(self.commit(vec![asked])).await;
        }
    }

    async fn transact(&mut self, batch: &[Asked], trusting: bool) -> Result<Outcome, Refused> {
        let shared = |error| Refused { error, shared: true };
        self.session.begin().await.map_err(shared)?;
        let done = match self.apply(batch, trusting).await {
            Ok(done) => done,
            Err(error) => {
                self.session.rollback().await;
                return Err(Refused { error, shared: false });
            }
        };
        match self.session.commit().await {
            Ok(()) => Ok(done),
            Err(CommitError::Refused(error)) => Err(shared(error)),
            Err(CommitError::Failed(error)) => Err(Refused { error, shared: false }),
            Err(CommitError::Unknown(error)) => {
                tracing::warn!(%error, requests = batch.len(), "the connection broke during a commit; its outcome is looked up");
                if self.was_committed().await { Ok(done) } else { Err(shared(error)) }
            }
        }
    }

    /// Asks until the database knows.
    async fn was_committed(&mut self) -> bool {
        for pause in pauses().build() {
            match self.session.outcome().await {
                Ok(committed) => return committed,
                Err(error) => tracing::debug!(%error, "the outcome of a commit is not known yet"),
            }
            tokio::time::sleep(pause).await;
        }
        false
    }

    async fn apply(&mut self, batch: &[Asked], trusting: bool) -> Result<Outcome, StoreError> {
        let mut yielded = Yielded::default();
        let (mut steps, mut pushes, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        for asked in batch {
            match &asked.work {
                Work::Turn(step, _) => steps.push(&**step),
                Work::Push(jobs, _) => pushes.push(jobs.as_slice()),
                Work::Report(report, _) => reports.push(&**report),
                Work::Other(..) => {}
            }
        }
        let known = trusting.then_some(&*self.held);
        let mut unit = Unit::default();
        let stepped = if steps.is_empty() {
            Vec::new()
        } else {
            turns::apply(&mut self.session, &mut unit, &steps, known).await?
        };
        yielded.take(unit);
        let mut unit = Unit::default();
        let pushed = if pushes.is_empty() {
            Vec::new()
        } else {
            push::apply(&mut self.session, &mut unit, &pushes).await?
        };
        yielded.take(unit);
        let mut unit = Unit::default();
        let reported = if reports.is_empty() {
            Vec::new()
        } else {
            remote::report(&mut self.session, &mut unit, &reports, known).await?
        };
        yielded.take(unit);
        let (mut stepped, mut pushed) = (stepped.into_iter(), pushed.into_iter());
        let mut reported = reported.into_iter();
        let mut done = Vec::with_capacity(batch.len());
        for asked in batch {
            let closed = || StoreError::Closed;
            done.push(match &asked.work {
                Work::Turn(..) => Done::Turn(stepped.next().unwrap_or_else(|| Err(closed().into()))),
                Work::Push(..) => Done::Push(pushed.next().unwrap_or_else(|| Err(closed()))),
                Work::Report(..) => Done::Report(Box::new(reported.next().ok_or_else(closed))),
                Work::Other(request, _) => {
                    let mut unit = Unit::default();
                    let answer = self.other(&mut unit, request).await?;
                    yielded.take(unit);
                    Done::Other(match answer {
                        Answer::Refused(error) => Err(error),
                        answer => Ok(answer),
                    })
                }
            });
        }
        // What is enqueued may replace a step of another workflow; what is cancelled may have children of its own.
        while !yielded.is_settled() {
            let mut unit = Unit::default();
            let (ended, kin) = (std::mem::take(&mut yielded.ended), std::mem::take(&mut yielded.kin));
            let freed = std::mem::take(&mut yielded.freed);
            delegations::advance(&mut self.session, &mut unit, kin).await?;
            yielded.take(unit);
            let mut unit = Unit::default();
            inputs::advance(&mut self.session, &mut unit, freed).await?;
            yielded.take(unit);
            if !ended.is_empty() {
                let mut unit = Unit::default();
                workflows::advance(&mut self.session, &mut unit, ended).await?;
                yielded.take(unit);
            }
        }
        let Yielded { mut rings, learnt, left, .. } = yielded;
        if self.limited.any_of(&left) {
            rings.push(Ring::Available);
        }
        rings.dedup();
        Ok(Outcome { done, rings, learnt })
    }

    #[expect(clippy::cognitive_complexity, reason = "one line per request, and nothing else")]
    async fn other(&mut self, unit: &mut Unit, request: &Request) -> Result<Answer, StoreError> {
        let session = &mut self.session;
        Ok(match request {
            Request::Claim(request) => {
                Answer::Claims(claim::apply(session, unit, request, &mut self.definitions, &*self.ids).await?)
            }
            Request::Cancel(job, tenant, at) => {
                Answer::Cancel(cancel::apply(session, unit, job, tenant.as_deref(), *at).await?)
            }
            Request::Decide(review, decision) => {
                Answer::Decision(reviews::apply(session, unit, review, decision).await?)
            }
            Request::Answer(given) => Answer::Answered(answer::apply(session, unit, given).await?),
            Request::Register(agent) => Answer::Changed(agents::register(session, unit, agent).await?),
            Request::RemoveAgent(removal) => Answer::Removed(agents::remove(session, unit, removal).await?),
            Request::Lead { holder, lease_ms, now } => {
                Answer::Term(leader::lead(session, holder, *lease_ms, *now, &*self.ids).await?)
            }
            Request::Resign(term) => {
                leader::resign(session, term).await?;
                Answer::Done
            }
            Request::Perform { duty, term, now, limit } => {
                if leader::holds(session, term).await? {
                    Answer::Count(perform(session, unit, *duty, *now, *limit).await?)
                } else {
                    Answer::Refused(StoreError::Deposed)
                }
            }
            Request::ReleaseAll { now } => Answer::Count(upkeep::release_all(session, unit, *now).await?),
            Request::Beat { beat, silent_ms } => match workers::beat(session, beat, *silent_ms).await? {
                Ok(()) => Answer::Done,
                Err(refused) => Answer::Refused(refused),
            },
            Request::Leave { name, instance } => {
                workers::leave(session, name, instance).await?;
                Answer::Done
            }
            Request::Extend { leases, until } => Answer::Lost(leases::extend(session, leases, *until).await?),
            Request::Release { leases, now } => {
                leases::release(session, unit, leases, *now).await?;
                Answer::Done
            }
            Request::Remote(asked) => Answer::Remote(remote::apply(session, unit, asked, &*self.ids).await?),
            Request::Queues(asked) => Answer::Queues(queues::apply(session, unit, asked, &*self.ids).await?),
            Request::Operate(asked) => {
                Answer::Operate(operate::apply(session, unit, asked, &*self.ids).await?)
            }
            Request::Workflows(asked) => {
                Answer::Workflows(workflows::apply(session, unit, asked, &*self.ids).await?)
            }
            Request::Crons(asked) => Answer::Crons(crons::apply(session, unit, asked, &*self.ids).await?),
            Request::Schemas(asked) => Answer::Schemas(schemas::apply(session, asked).await?),
            Request::Tenants(asked) => {
                Answer::Tenants(tenants::apply(session, unit, asked, &*self.ids).await?)
            }
            Request::Webhooks(asked) => match webhooks::apply(session, unit, asked, &*self.ids).await? {
                webhooks::Answer::Deposed => Answer::Refused(StoreError::Deposed),
                answer => Answer::Webhooks(answer),
            },
            Request::Budgets(asked) => Answer::Budgets(budgets::apply(session, unit, asked).await?),
            Request::Credentials(asked) => Answer::Changed(credentials::apply(session, asked).await?),
            Request::Control(asked) => {
                Answer::Control(control::apply(session, unit, asked, &*self.ids).await?)
            }
            Request::Runs(asked) => Answer::Runs(runs::apply(session, asked).await?),
            Request::Fork(asked) => Answer::Forked(fork::apply(session, unit, asked, &*self.ids).await?),
            Request::Import(asked) => {
                let (record, at) = &**asked;
                Answer::Imported(import::apply(session, unit, record, *at, &*self.ids).await?)
            }
            Request::Breakers(asked) => Answer::Breakers(breakers::apply(session, unit, asked).await?),
            Request::Elsewhere(asked) => Answer::CallOffs(elsewhere::apply(session, unit, asked).await?),
            Request::Idempotency(asked) => {
                Answer::Idempotency(push::idempotency::apply(session, unit, asked).await?)
            }
        })
    }
}

async fn perform<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    duty: Duty,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    match duty {
        Duty::PromoteDue => upkeep::promote_due(session, unit, now, limit).await,
        Duty::ReapExpired => upkeep::reap(session, unit, now, limit).await,
        Duty::ExpireJobs => upkeep::expire_jobs(session, unit, now, limit).await,
        Duty::ExpireReviews => reviews::expire(session, unit, now, limit).await,
        Duty::RemindReviews => reviews::remind(session, unit, now, limit).await,
        Duty::TimeOutJobs => {
            let late = delegations::time_out(session, unit, now, limit).await?;
            Ok(late + time_out::apply(session, unit, now, limit.saturating_sub(late)).await?)
        }
        Duty::Prune { before } => prune::apply(session, before, now, limit).await,
        Duty::FoldStatistics { until } => statistics::fold(session, until, limit).await,
    }
}

/// The pauses between attempts.
fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(1))
        .without_max_times()
}

fn tell_of_silence(told: bool, error: &StoreError, requests: usize) {
    if !told {
        tracing::warn!(%error, requests, "the database does not answer; writes are tried again until it does");
    }
}

fn tell_of_recovery(told: bool) {
    if told {
        tracing::info!("the database answers again");
    }
}

/// Tells those that have waited too long that the database does not answer; returns the others.
fn tell_the_impatient(batch: Vec<Asked>, error: &StoreError) -> Vec<Asked> {
    let (waiting, gone): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .partition(|asked| matches!(asked.work, Work::Turn(..)) || asked.at.elapsed() < PATIENCE);
    let refused = gone.iter().map(|asked| refusal(&asked.work, error)).collect();
    give(gone, refused);
    waiting
}

fn refusal(work: &Work, error: &StoreError) -> Done {
    match work {
        Work::Turn(..) => Done::Turn(Err(LedgerError::Store(error.clone()))),
        Work::Push(..) => Done::Push(Err(error.clone())),
        Work::Report(..) => Done::Report(Box::new(Err(error.clone()))),
        Work::Other(..) => Done::Other(Err(error.clone())),
    }
}

/// Gives the answers. A caller that has gone away does not want its own.
fn give(batch: Vec<Asked>, done: Vec<Done>) {
    for (asked, done) in batch.into_iter().zip(done) {
        match (asked.work, done) {
            (Work::Turn(_, reply), Done::Turn(done)) => drop(reply.send(done)),
            (Work::Push(_, reply), Done::Push(done)) => drop(reply.send(done)),
            (Work::Report(_, reply), Done::Report(done)) => drop(reply.send(*done)),
            (Work::Other(_, reply), Done::Other(done)) => drop(reply.send(done)),
            _ => tracing::error!("the writer mixed up its answers"),
        }
    }
}
