//! Claims. There are two ways:
//!
//! - In one statement (`sql/postgres_alone/update_claimed_jobs.sql`), on a connection of its own. It is fast, and serves when no
//!   rule about the jobs needs a second look. Only PostgreSQL has it. It takes before it reads: what this version cannot read is
//!   given back, and left to the other way.
//! - Step by step, as a write of the writer (`claim::apply`). It knows all rules, such as limits of queues and rate limits, and
//!   it skips jobs that cannot be read.
//!
//! A claim first tries the one statement. When that finds a reason for the other way, the next claims take the other way at
//! once, for a while.

use super::Engine;
use super::definitions::Definitions;
use super::held::{HeldJobs, KnownJob};
use super::ops::claim::{self, past};
use super::passed::Passed;
use super::request::Apply;
use super::rows::{self, EngagementRow, Fields, Inconsistency, JobRow, Prefixed, get, wrong};
use super::session::{Args, CommitError, Durability, Row, Session, limit};
use super::statement::{as_json, read};
use super::unit::Unit;
use crate::{Claim, ClaimRequest, Doorbell, JobKind, Ring, StoreError, sql};
use backon::{BackoffBuilder, ExponentialBuilder};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{Ids, Timestamp};

/// How long claims are made step by step after one met a job that cannot be read, in milliseconds. The one statement would claim
/// that job again each time.
const DAMAGED_MS: i64 = 3_600_000;
/// The same after a rule applied that stays, such as the limit of a queue.
const RULED_MS: i64 = 1_000;
/// The most claims that wait for the connection in its channel.
const INBOX: usize = 64;

/// The result of a claim in one statement.
pub(super) enum ClaimOutcome {
    /// Nothing was taken, because a rule may apply. `true`: a rule that stays, such as a limit of a queue.
    Ruled(bool),
    /// All that there is, or as many as were asked for.
    Claimed(ClaimBatch),
    /// The same, without jobs that cannot be read; those were given back.
    Damaged(ClaimBatch),
}

/// The jobs of a claim, in its order.
#[derive(Default)]
pub(super) struct ClaimBatch {
    pub claims: Vec<Claim>,
    /// The rows of plain jobs.
    pub rows: Vec<JobRow>,
}

/// A job that was taken.
struct TakenJob {
    known: KnownJob,
    retry: RetryPolicy,
    envelope: Envelope,
}

impl TakenJob {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        let job = Box::new(JobRow::decode(row)?);
        if let Some(why) = &job.damaged {
            return Err(wrong("jobs", why));
        }
        let engagement = match job.engagement_seq {
            Some(_) => Some(Box::new(EngagementRow::decode(&Prefixed { row, prefix: "e_" })?)),
            None => None,
        };
        let (_, retry, envelope) = rows::envelope(row)?;
        Ok(Self { known: KnownJob { job, engagement }, retry, envelope })
    }
}

/// A claim, and the channel for its answer.
pub(super) type Asked = (ClaimRequest, oneshot::Sender<Result<ClaimOutcome, StoreError>>);

/// The connection for claims, and what is remembered between them.
struct Claimer {
    session: Session,
    ids: Arc<dyn Ids>,
    doorbell: Doorbell,
    definitions: Definitions,
    passed: Passed,
    held: Arc<HeldJobs>,
}

/// Starts a claimer on the current runtime; it ends when the sender is dropped.
pub(super) fn start(
    session: Session,
    ids: Arc<dyn Ids>,
    doorbell: Doorbell,
    held: Arc<HeldJobs>,
) -> mpsc::Sender<Asked> {
    let (sender, inbox) = mpsc::channel(INBOX);
    let (definitions, passed) = (Definitions::default(), Passed::default());
    let claimer = Claimer { session, ids, doorbell, definitions, passed, held };
    tokio::spawn(claimer.run(inbox));
    sender
}

impl Engine {
    /// Claims in one statement; `None` when nothing was claimed and the claim has to be made step by step.
    pub(super) async fn claim_alone(&self, request: &ClaimRequest) -> Result<Option<ClaimBatch>, StoreError> {
        let Some(claimer) = &self.claimer else { return Ok(None) };
        if request.limit == 0 || request.now.0 < claimer.from.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let step_by_step_for =
            |ms: i64| claimer.from.store(request.now.0.saturating_add(ms), Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        if claimer.asked.send((request.clone(), reply)).await.is_err() {
            return Ok(None);
        }
        let Ok(answer) = answer.await else { return Ok(None) };
        match answer {
            Ok(ClaimOutcome::Claimed(batch)) => Ok(Some(batch)),
            Ok(ClaimOutcome::Damaged(batch)) => {
                step_by_step_for(DAMAGED_MS);
                Ok(Some(batch))
            }
            Ok(ClaimOutcome::Ruled(stays)) => {
                if stays {
                    step_by_step_for(RULED_MS);
                }
                Ok(None)
            }
            // The writer can do better: it claims the jobs that can be read, and waits for a database that does not answer.
            Err(error) => {
                tracing::warn!(%error, "jobs cannot be claimed in one statement; they are claimed step by step");
                step_by_step_for(if matches!(error, StoreError::Unreadable { .. }) {
                    DAMAGED_MS
                } else {
                    RULED_MS
                });
                Ok(None)
            }
        }
    }

    /// Claims jobs: in one statement, or else step by step. When other claims hold all jobs that it could take, it tries again
    /// for less than half a second.
    pub(super) async fn claim_jobs(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        if let Some(batch) = self.claim_alone(&request).await? {
            return Ok(batch.claims);
        }
        // A turn writes before it calls anything. The start of a plain job is its claim, and an event.
        let durability = match request.kind {
            JobKind::Agent => Durability::WithTheNext,
            JobKind::Plain => Durability::AtOnce,
        };
        let apply: Apply<_, _> = |tx, request| Box::pin(claim::apply(tx, request));
        let mut pauses = busy_pauses().build();
        loop {
            let claimed = self.write_as(durability, true, request.clone(), apply).await?;
            let pause = pauses.next().filter(|_| claimed.busy && claimed.claims.is_empty());
            let Some(pause) = pause else { return Ok(claimed.claims) };
            tokio::time::sleep(pause).await;
        }
    }
}

impl Claimer {
    /// Makes one claim after the other. The tokens of the leases of a claim begin with the same random text, by which its jobs
    /// can be found when its answer is lost.
    async fn run(mut self, mut inbox: mpsc::Receiver<Asked>) {
        while let Some((request, reply)) = inbox.recv().await {
            if reply.is_closed() {
                continue;
            }
            let token = self.ids.next();
            let answer = self.claim(&request, &token).await;
            if let Err(Ok(_)) = reply.send(answer) {
                // The caller has gone away, so no worker would run these jobs.
                self.give_back(&token, request.now).await;
            }
        }
    }

    async fn claim(&mut self, request: &ClaimRequest, token: &str) -> Result<ClaimOutcome, StoreError> {
        self.session.begin(Durability::AtOnce).await?;
        let mut unit = Unit::default();
        let session = &mut self.session;
        let claimed = match take(session, &mut self.passed, request, token).await {
            Ok(rows) => claimed(session, &mut unit, request, &mut self.definitions, &rows).await,
            Err(error) => Err(error),
        };
        let claimed = match claimed {
            Ok(outcome) => self.session.commit().await.map(|()| outcome).map_err(|error| match error {
                CommitError::Failed(error) | CommitError::Refused(error) | CommitError::Unknown(error) => {
                    CommitError::Unknown(error)
                }
            }),
            refused => {
                self.session.rollback().await;
                refused
            }
        };
        match claimed {
            Ok(outcome) => {
                self.held.learn(unit.learnt());
                unit.rings.dedup();
                unit.rings.drain(..).for_each(|ring| self.doorbell.ring(ring));
                Ok(outcome)
            }
            Err(CommitError::Failed(error) | CommitError::Refused(error)) => Err(error),
            Err(CommitError::Unknown(error)) => {
                self.give_back(token, request.now).await;
                Err(error)
            }
        }
    }

    /// Releases the jobs of a claim whose answer did not reach its worker. If the database does not answer, their leases expire
    /// like those of a killed worker.
    async fn give_back(&mut self, token: &str, now: Timestamp) {
        for pause in lookup_pauses().build() {
            match self.try_to_give_back(token, now).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(%error, "the jobs of a lost claim cannot be released yet"),
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(
            "the jobs of a lost claim cannot be released; they become available when their leases have expired"
        );
    }

    async fn try_to_give_back(&mut self, token: &str, now: Timestamp) -> Result<(), StoreError> {
        // The database may still be committing the claim; this waits until that has ended.
        self.session.outcome().await?;
        self.passed.forget();
        self.session.begin(Durability::AtOnce).await?;
        let mut unit = Unit::default();
        if let Err(error) = give_back(&mut self.session, &mut unit, token, now).await {
            self.session.rollback().await;
            return Err(error);
        }
        match self.session.commit().await {
            Ok(()) => {
                self.held.learn(unit.learnt());
                unit.rings.drain(..).for_each(|ring| self.doorbell.ring(ring));
                Ok(())
            }
            Err(CommitError::Failed(error) | CommitError::Refused(error) | CommitError::Unknown(error)) => {
                Err(error)
            }
        }
    }
}

/// Claims, and returns the rows of the statement; `token` is how the tokens begin. The statement commits itself, and what
/// follows it belongs to the transaction of the session.
///
/// # Errors
/// [`CommitError::Unknown`] when it may have taken jobs whose names did not arrive.
async fn take(
    session: &mut Session,
    passed: &mut Passed,
    request: &ClaimRequest,
    token: &str,
) -> Result<Vec<Row>, CommitError> {
    let queues = as_json(&request.queues).map_err(CommitError::Failed)?;
    let tags = request.runtime_tags.as_ref().map(as_json).transpose().map_err(CommitError::Failed)?;
    loop {
        let began = Instant::now();
        let places = passed.places(request, began);
        let from_beginning = places.is_empty();
        let places = as_json(places).map_err(CommitError::Failed)?;
        let values = [
            request.kind.as_str().into(),
            queues.as_str().into(),
            limit(request.limit).into(),
            request.now.0.into(),
            request.tenant.as_deref().into(),
            tags.as_deref().into(),
            (!request.worker_id.is_empty()).then_some(request.worker_id.as_str()).into(),
            request.lease_ms.into(),
            token.into(),
            places.as_str().into(),
            session.own_commit_id().into(),
        ];
        let rows = session.rows_alone("claim jobs", &sql::UPDATE_CLAIMED_JOBS, Args::Values(&values)).await?;
        let taken = rows.iter().map(place).collect::<Result<Vec<_>, _>>();
        let taken: Vec<_> =
            taken.map_err(|error| CommitError::Unknown(error.into()))?.into_iter().flatten().collect();
        let found = !taken.is_empty();
        passed.note(request, began, taken);
        if found || from_beginning {
            return Ok(rows);
        }
    }
}

/// Returns the queue, the priority and the number of a job that was taken; the first row may be none.
fn place(row: &Row) -> Result<Option<(String, i64, i64)>, Inconsistency> {
    let Some(queue) = get::<Option<String>>(row, "queue")? else { return Ok(None) };
    Ok(Some((queue, get(row, "priority")?, get(row, "seq")?)))
}

/// Returns the outcome of a claim with these rows.
async fn claimed(
    session: &mut Session,
    unit: &mut Unit,
    request: &ClaimRequest,
    definitions: &mut Definitions,
    rows: &[Row],
) -> Result<ClaimOutcome, CommitError> {
    let rule = rows.first().map_or(Ok(0), |row| get::<i64>(row, "rule"));
    match rule.map_err(|error| CommitError::Unknown(error.into()))? {
        0 => Box::pin(taken(session, unit, request, definitions, rows)).await.map_err(CommitError::Unknown),
        rule => Ok(ClaimOutcome::Ruled(rule == 1)),
    }
}

/// Makes claims of what was taken.
async fn taken(
    session: &mut Session,
    unit: &mut Unit,
    request: &ClaimRequest,
    definitions: &mut Definitions,
    rows: &[Row],
) -> Result<ClaimOutcome, StoreError> {
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    for row in rows {
        let Some(token) = get::<Option<String>>(row, "lease_token")? else { continue };
        match TakenJob::decode(row) {
            Ok(taken) => found.push(taken),
            Err(error) => {
                tracing::error!(error = %StoreError::from(error), "a job that cannot be read is given back");
                damaged.push(token);
            }
        }
    }
    let mut agents = HashMap::new();
    let mut sent = Vec::with_capacity(found.len());
    for TakenJob { known, retry, envelope } in found {
        let (seq, token) = (known.job.seq, known.job.lease_token.clone());
        let digest = known.engagement.as_ref().map(|row| row.digest.clone());
        unit.take_claimed(known, request);
        sent.push((seq, token, retry, envelope));
        let Some(digest) = digest else { continue };
        match definitions.get(session, &digest).await {
            Ok(agent) => drop(agents.insert(seq, agent)),
            // The claim that reads its jobs one by one ends those that must not run.
            Err(StoreError::NotRegistered { .. }) => {
                damaged.extend(unit.job(seq).and_then(|job| job.lease_token.clone()));
            }
            Err(error @ (StoreError::Unreadable { .. } | StoreError::Inconsistent { .. })) => {
                tracing::error!(%error, "an agent cannot be read; its job is given back");
                damaged.extend(unit.job(seq).and_then(|job| job.lease_token.clone()));
            }
            Err(error) => return Err(error),
        }
    }
    let jobs = sent.iter().filter_map(|(seq, ..)| unit.job(*seq));
    let mut done = past::read(session, unit, jobs, |seq, error| {
        tracing::error!(error = %StoreError::from(error), "a job whose checkpoints cannot be read is given back");
        damaged.extend(unit.job(seq).and_then(|job| job.lease_token.clone()));
    })
    .await?;
    let mut batch = ClaimBatch::default();
    for (seq, token, retry, envelope) in sent {
        if token.is_some_and(|token| damaged.contains(&token)) {
            unit.distrust(seq);
            continue;
        }
        let done = done.remove(&seq).unwrap_or_default();
        batch.claims.extend(claim::claimed(unit, seq, retry, envelope, done, agents.remove(&seq)));
        batch.rows.extend(unit.job(seq).filter(|job| job.engagement_seq.is_none()).cloned());
    }
    if damaged.is_empty() {
        return Ok(ClaimOutcome::Claimed(batch));
    }
    release(session, unit, &damaged.join(" "), request.now).await?;
    Ok(ClaimOutcome::Damaged(batch))
}

/// Gives back what a claim took whose answer was lost; `token` is how its tokens begin.
async fn give_back(
    session: &mut Session,
    unit: &mut Unit,
    token: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let given = release(session, unit, &format!("{token}-%"), now).await?;
    if given > 0 {
        tracing::warn!(jobs = given, "the answer of a claim was lost; its jobs are given back");
    }
    Ok(())
}

/// Gives jobs back without reading them; `tokens` are LIKE patterns.
async fn release(
    session: &mut Session,
    unit: &mut Unit,
    tokens: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let values = [tokens.into(), now.0.into(), session.commit_id(true).into()];
    let given =
        read(session, "give jobs back", &sql::UPDATE_RELEASED_JOBS, &values, |row| get::<i64>(row, "jobs"))
            .await?;
    unit.rings.push(Ring::Available);
    Ok(given.first().copied().unwrap_or_default())
}

/// The pauses between attempts to release the jobs of a lost claim: together about 15 seconds.
fn lookup_pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_millis(500))
        .with_max_times(40)
}

/// The pauses of a claim whose jobs other transactions hold at the moment: together less than half a second.
pub(super) fn busy_pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(2))
        .with_max_delay(Duration::from_millis(50))
        .with_max_times(12)
        .with_jitter()
}
