//! Checkpoints and settlements of many turns in one transaction, each fenced by its own lease and by the end of its record.
//!
//! [`apply`] has three parts. It reads and locks the rows of all jobs. It decides each step in memory, one after the other. And
//! it writes everything that changed, in bulk. So the number of statements does not grow with the number of turns. A process
//! keeps copies of the rows of jobs that it leases ([`HeldJobs`]), and reads only the others.

use super::super::held::{HeldJobs, KnownJob};
use super::super::rows::{JobRow, LeaseKey};
use super::super::session::Session;
use super::super::statement::read_by;
use super::super::unit::Unit;
use super::artifacts;
use super::charge;
use super::delegations;
use super::reviews;
use super::session_state;
use crate::{Committed, LedgerError, Ring, StoreError, sql};
use serde_json::Value;
use turnstone_domain::budget::{BudgetWait, Measure};
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{Completed, EventBody, FailedAttempt, Parked, Reason, Retried, UserQuestion};
use turnstone_domain::question::AskedUser;
use turnstone_domain::reported::HandlerWord;
use turnstone_domain::review::NewReview;
use turnstone_domain::{JobError, Lease, RawJson, Settlement, Timestamp, TurnWrite, Wait};

/// The longest result, in bytes, that the event `job.completed` contains; of a longer one it has the size only.
const MOST_RESULT_BYTES: usize = 8 * 1024;

/// A request of one turn: a checkpoint or a settlement.
pub(in super::super) struct TurnStep {
    pub lease: Lease,
    pub write: TurnWrite,
    pub now: Timestamp,
    pub end: TurnEnd,
}

/// The consequence of the step for its lease.
pub(in super::super) enum TurnEnd {
    /// A checkpoint: the lease is extended to this time.
    Extend(Timestamp),
    /// A settlement: the lease ends, and the job moves to its next state.
    Settle(Box<Settlement>),
}

/// Applies all steps in the open transaction. Each step gets an answer of its own, and a refused step writes nothing. The rows of
/// jobs in `known` are not read.
///
/// # Errors
/// The failure of the store. Also when a row in `known` has changed in the database meanwhile: then nothing is written, and the
/// caller has to repeat all steps with `known` as `None`.
pub(in super::super) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    steps: &[&TurnStep],
    known: Option<&HeldJobs>,
) -> Result<Vec<Result<Committed, LedgerError>>, StoreError> {
    // A job that parks for a budget must not miss a raise that is committed at the same time. So its rows are read and locked.
    let known = known.filter(|_| !steps.iter().any(|step| charge::waits(step).is_some()));
    read(session, unit, steps, known).await?;
    let answers = decide(unit, steps, known.is_some())?;
    commit(session, unit).await?;
    Ok(answers)
}

/// Puts every row into the unit that a decision needs: jobs and engagements, the agents' state, files, and budgets.
async fn read(
    session: &mut Session,
    unit: &mut Unit,
    steps: &[&TurnStep],
    known: Option<&HeldJobs>,
) -> Result<(), StoreError> {
    let mut leases = Vec::new();
    for step in steps {
        // The event of a job that is given back says if it is paused, and the copy may not know that. So its row is read.
        let yields = matches!(&step.end, TurnEnd::Settle(end) if matches!(**end, Settlement::Yield | Settlement::GiveWay));
        let fits = |KnownJob { job, engagement }: &KnownJob| {
            let is_held = job.lease_token.as_deref() == Some(step.lease.token.as_str());
            let end = engagement.as_ref().map(|row| row.record_end);
            is_held
                && end.map_or_else(|| is_one_event(step), |end| step.write.follows.is_none_or(|of| of == end))
        };
        match known.filter(|_| !yields).and_then(|held| held.take(&step.lease.job, fits)) {
            Some(known) => unit.take_known(known),
            None => {
                let (id, token) = (step.lease.job.clone(), step.lease.token.clone());
                leases.push(LeaseKey { id, token });
            }
        }
    }
    let rows = read_by(session, "check leases", &sql::LOCK_JOBS_BY_LEASE, leases, JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    session_state::take_in(session, unit, steps).await?;
    artifacts::take_in(session, unit, steps).await?;
    unit.read_shared(session, &charge::named(steps)).await?;
    let charged = steps.iter().filter(|step| charge::moves(step));
    let jobs: Vec<i64> = charged.filter_map(|step| unit.seq_of(&step.lease.job)).collect();
    unit.read_held(session, &jobs).await?;
    if known.is_none() {
        unit.lock_budgets(session, &jobs).await?;
    }
    Ok(())
}

/// Decides each step in memory, from the rows in the unit. `unlocked` is true when budgets were taken from copies. Then a budget
/// that seems to have too little left refuses no step, because other jobs may have released tokens meanwhile. Instead all steps
/// fail, and are repeated with locked rows.
fn decide(
    unit: &mut Unit,
    steps: &[&TurnStep],
    unlocked: bool,
) -> Result<Vec<Result<Committed, LedgerError>>, StoreError> {
    let mut answers = Vec::with_capacity(steps.len());
    for step in steps {
        answers.push(match decide_one(unit, step) {
            Err(LedgerError::Store(error)) => return Err(error),
            Err(LedgerError::BudgetExceeded { .. } | LedgerError::Unpriced { .. }) if unlocked => {
                return Err(StoreError::Database {
                    action: "rely on the copy of a budget",
                    message: "the copy has not enough left; the row is locked and read".to_owned(),
                });
            }
            answer => answer,
        });
    }
    Ok(answers)
}

/// Writes the changed rows, and starts the delegates that parked jobs wait for.
async fn commit(session: &mut Session, unit: &mut Unit) -> Result<(), StoreError> {
    unit.flush(session).await?;
    let families = std::mem::take(&mut unit.families);
    if !families.is_empty() {
        let mut own = Unit::default();
        delegations::start(session, &mut own, families).await?;
        unit.absorb(own);
    }
    Ok(())
}

/// Returns true if a step adds only `job.completed` to the events of a plain job. Only then its copy may be used. The worker of a
/// plain job may save its state through another process, which adds an event as well, under the same fencing token. Then both
/// events have the same number, which the database refuses, and the step is repeated with the row read.
fn is_one_event(step: &TurnStep) -> bool {
    let completes = matches!(&step.end, TurnEnd::Settle(end) if matches!(**end, Settlement::Complete { .. }));
    completes && step.write.events.is_empty()
}

/// Decides one step: checks the lease and the end of the record, what may be refused first, and adds all of its writes to the unit.
///
/// # Errors
/// The refusals of [`crate::Ledger::checkpoint`]. They come before the first change.
fn decide_one(unit: &mut Unit, step: &TurnStep) -> Result<Committed, LedgerError> {
    let lost = || LedgerError::LeaseLost(step.lease.job.clone());
    let seq = unit.seq_of(&step.lease.job).ok_or_else(lost)?;
    if unit.job(seq).and_then(|job| job.lease_token.as_deref()) != Some(step.lease.token.as_str()) {
        return Err(lost());
    }
    let write = &step.write;
    if is_behind(unit, seq, write) {
        // A copy that could hide it is not taken, so the row was read, or the statement fails and it is read then.
        unit.distrust(seq);
        return Err(lost());
    }
    if let Some(commit) = &write.state {
        unit.states.check(commit)?;
    }
    charge::apply(unit, seq, write, step.now)?;
    if let Some(commit) = &write.state {
        unit.states.apply(commit, step.now)?;
    }
    for done in &write.checkpoints {
        unit.checkpoint(seq, done);
    }
    for (turn, message) in &write.messages {
        unit.message(seq, *turn, message, step.now)?;
    }
    for call in &write.tool_calls {
        unit.tool_call(seq, call, step.now)?;
    }
    for check in &write.checks {
        unit.guardrail_check(seq, check)?;
    }
    artifacts::put(unit, seq, &write.artifacts, step.now);
    if let Some(exchange) = &write.remember {
        unit.remember(seq, exchange, step.now);
    }
    for event in &write.events {
        unit.event(seq, event)?;
    }
    let job = unit.change_job(seq)?;
    // The worker lived long enough to commit something, so the job does not kill its workers at once.
    if !write.checkpoints.is_empty() || !write.tool_calls.is_empty() {
        job.lapses = 0;
    }
    if let Some(position) = &write.position {
        job.position = Some(position.clone());
    }
    match &step.end {
        TurnEnd::Extend(until) => job.lease_expires_at = Some(*until),
        TurnEnd::Settle(settlement) => settle(unit, seq, settlement, step.now)?,
    }
    let record_end = unit.count_write(seq);
    let paused = unit.job(seq).is_some_and(|job| job.held);
    Ok(Committed { budget: unit.budget_of(seq), paused, record_end })
}

/// Returns true if the record does not end where the write follows it. The database has lost commits of this worker then, as after a
/// failover to a standby that misses them. A write would leave a hole in the record.
fn is_behind(unit: &Unit, seq: i64, write: &TurnWrite) -> bool {
    let ends = unit.engagement_of(seq).map(|row| row.record_end);
    let Some((follows, ends)) = write.follows.zip(ends).filter(|(follows, ends)| follows != ends) else {
        return false;
    };
    let job = unit.job(seq).map(|job| job.id.as_str());
    tracing::warn!(
        job,
        "the database has lost commits of this job: its record ends with {ends}, and its worker has written {follows}; \
         the write is refused, and the job resumes from the stored record"
    );
    true
}

/// Settles a job: releases its reservations, moves it to its next state, and records the event and all consequences.
pub(super) fn settle(
    unit: &mut Unit,
    seq: i64,
    settlement: &Settlement,
    now: Timestamp,
) -> Result<(), StoreError> {
    unit.give_back(seq)?;
    let job = unit.change_job(seq)?;
    job.step(settlement.trigger(), now)?;
    let held = job.held;
    let body = match settlement {
        Settlement::Complete { result, withheld } => {
            unit.result(seq, result);
            let visible = Some(result).filter(|_| !withheld);
            EventBody::JobCompleted(completed(unit.change_job(seq)?, visible, now))
        }
        Settlement::Retry { error, run_at, delay_ms } => {
            job.failures += i64::from(error.counts_as_failure());
            job.run_at = *run_at;
            job.retry_delay_ms = Some(*delay_ms);
            if error.kind == FailureKind::TokenBudget {
                unit.wait_for(seq, &BudgetWait::after(error), None);
            }
            unit.wait_for_breaker(seq, error, now);
            unit.error(seq, error, now)?;
            failed(unit, seq, error, now)?;
            unit.rings.push(Ring::Due);
            EventBody::JobRetrying(Retried {
                failure: error.event_data(),
                retry_delay_ms: *delay_ms,
                next_retry_at: run_at.to_rfc3339(),
            })
        }
        Settlement::Discard { error } => {
            job.failures += 1;
            match error.handler_word() {
                Some(HandlerWord::DeadLetter) => job.dead_letter = true,
                Some(HandlerWord::Discard) => job.dead_letter = false,
                // The document asks for an escalation and names no reviewer. So the job becomes a dead letter, where operators
                // find it (OSSA §2 `escalate`).
                _ if error.alerts() => job.dead_letter = true,
                _ => {}
            }
            unit.error(seq, error, now)?;
            failed(unit, seq, error, now)?;
            EventBody::JobDiscarded(error.event_data())
        }
        Settlement::Park { wait: Wait::Review(review) } => {
            wait_for_reviews(unit, seq, std::slice::from_ref(review), now)?
        }
        Settlement::Park { wait: Wait::Reviews(reviews) } => wait_for_reviews(unit, seq, reviews, now)?,
        Settlement::Park { wait: Wait::Input(requested) } => wait_for_user(unit, seq, requested, now)?,
        Settlement::GiveWay => {
            unit.rings.push(Ring::Available);
            EventBody::JobYielded(Reason::of("something more urgent waits"))
        }
        Settlement::Park { wait: Wait::Children(children) } => {
            for review in children.iter().filter_map(|child| child.review.as_deref()) {
                reviews::open(unit, seq, review, now)?;
            }
            unit.wait_for_children(seq, children, now);
            EventBody::JobParked(Parked::Children { children: children.len() })
        }
        Settlement::Park { wait: Wait::Raise(wait) } => {
            let look_again = charge::look_again(unit, seq, wait, now);
            unit.wait_for(seq, wait, look_again.into_iter().chain(wait.until).min());
            unit.rings.push(Ring::Due);
            EventBody::JobParked(Parked::Budget {
                kind: "budget".to_owned(),
                budget: wait.name.clone().unwrap_or_else(|| "engagement".to_owned()),
                needed: wait.needed,
                unit: (wait.measure == Measure::Money).then_some(Measure::Money),
                until: wait.resets_at.map(Timestamp::to_rfc3339),
                given_up_at: wait.until.map(Timestamp::to_rfc3339),
            })
        }
        Settlement::Yield if held => EventBody::JobYielded(Reason::of("paused")),
        Settlement::Yield => {
            unit.rings.push(Ring::Available);
            EventBody::JobYielded(Reason::of("draining"))
        }
    };
    unit.note(seq, body, now)
}

/// Opens the reviews of a job that was just parked; returns the event of the parking.
fn wait_for_reviews(
    unit: &mut Unit,
    seq: i64,
    new: &[NewReview],
    now: Timestamp,
) -> Result<EventBody, StoreError> {
    for review in new {
        reviews::open(unit, seq, review, now)?;
    }
    Ok(EventBody::JobParked(match new {
        [review] => Parked::Review {
            review_id: review.id.clone(),
            kind: review.kind,
            reviewer: review.reviewer.clone(),
        },
        several => Parked::Reviews { reviews: several.iter().map(|review| review.id.clone()).collect() },
    }))
}

/// Records the question of a job that was just parked for its user; returns the event of the parking.
fn wait_for_user(
    unit: &mut Unit,
    seq: i64,
    requested: &AskedUser,
    now: Timestamp,
) -> Result<EventBody, StoreError> {
    if let Some(position) = &mut unit.change_job(seq)?.position {
        position.asks = Some(requested.call_id.clone());
    }
    let question = UserQuestion {
        call_id: requested.call_id.clone(),
        request_keys: requested.question.request_keys(),
        exposes: Some(requested.exposes.clone()).filter(|exposes| !exposes.is_empty()),
    };
    unit.note(seq, EventBody::InputRequested(question), now)?;
    Ok(EventBody::JobParked(Parked::Input { kind: "input".to_owned(), call_id: requested.call_id.clone() }))
}

/// Records the event `job.failed` of an attempt. Another event follows it, which says if the job is retried or discarded.
pub(super) fn failed(unit: &mut Unit, seq: i64, error: &JobError, now: Timestamp) -> Result<(), StoreError> {
    let attempt = unit.job(seq).map_or(0, |job| job.attempt);
    unit.note(seq, EventBody::JobFailed(FailedAttempt { failure: error.event_data(), attempt }), now)
}

fn completed(job: &JobRow, result: Option<&RawJson>, now: Timestamp) -> Completed {
    let began = job.claimed_at.or(job.started_at).unwrap_or(now);
    let bytes = result.map(|result| result.as_str().len());
    // A result with numbers that JSON readers cannot represent would make the event unreadable, so it stays with the job.
    let shown =
        result.filter(|result| result.as_str().len() <= MOST_RESULT_BYTES && result.parse::<Value>().is_ok());
    let is_agents = job.engagement_seq.is_some();
    let model_used = || job.position.as_ref().and_then(|position| position.model_used.clone());
    Completed {
        attempt: job.attempt,
        duration_ms: now.since(began).max(0),
        result: shown.cloned(),
        result_bytes: bytes.filter(|_| shown.is_none()),
        tokens_used: is_agents.then_some(job.tokens_used),
        model_used: is_agents.then(model_used),
    }
}
