//! The scheduler's duties: [`perform`] checks the leader's term and runs one batch of a duty in the transaction of the writer.
//!
//! This file has the duties that only change the state of jobs. The others are in the files that [`perform`] names.

use super::super::rows::{self, JobRow};
use super::super::session::{Arg, Args, Session, limit as row_limit};
use super::super::statement::read;
use super::super::unit::Unit;
use super::{
    batches, breakers, budgets, control, delegations, leader, prune, remote, reviews, statistics, time_out,
    turns, unreadable,
};
use crate::sql::{self, Text};
use crate::{Claim, Duty, Ring, StoreError, Term, WorkerBeat};
use std::collections::HashSet;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{Ended, EventBody, Lapsed, Reason, Rescheduled};
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::state::Trigger;
use turnstone_domain::{ClockStep, ClockSteps, JobError, JobId, JobState, Settlement, Timestamp};

/// The delay of an agent's job after its first, second, third and fourth lease in a row that expired without a checkpoint, in
/// milliseconds. The last delay is long, because the workers may die for a reason that an operator has to repair.
const DELAYS_MS: [i64; 4] = [0, 1_000, 5_000, 60_000];
/// The number of leases in a row that an agent's job may lose without a checkpoint. For the last two of them it ran alone in its
/// worker. After that it is paused for an operator.
const MAX_LAPSES: i64 = Claim::LAPSES_IN_COMPANY + 2;

/// All processes have adopted a step of the clock after this long, in milliseconds. A time that lies further in the future was
/// written before the clock stepped back.
pub(in super::super) const ADOPTED_MS: i64 = 5_000;
/// The pauses that were written before a step back are bounded for this long after it, in milliseconds.
const BOUNDED_MS: i64 = 30_000;

/// The current time, and the steps of the clock that shows it.
#[derive(Clone, Copy)]
pub(in super::super) struct Moment {
    pub at: Timestamp,
    pub steps: ClockSteps,
}

impl Moment {
    /// Returns the last step forward and the earlier ones: the time before which everything was written before the step, and the
    /// length of the step in milliseconds, of each.
    pub(super) fn steps_forward(&self) -> [i64; 4] {
        let step = |step: Option<ClockStep>| step.map_or((0, 0), |step| (step.from.0, step.by_ms));
        let ((from, by_ms), (earlier, earlier_ms)) = (step(self.steps.forward), step(self.steps.earlier));
        [from, by_ms, earlier, earlier_ms]
    }

    /// Returns the time after which everything was written before the last step back, and the length of the step in
    /// milliseconds.
    pub(super) fn step_back(&self) -> (i64, i64) {
        // When as much time has passed, nothing that was written before lies in the future.
        let lasts = |step: &ClockStep| self.at.since(step.noticed_at) < step.by_ms;
        let by_ms = self.steps.back.filter(lasts).map_or(0, |step| step.by_ms);
        (self.at.plus_ms(ADOPTED_MS).0, by_ms)
    }
}

/// Reads and locks the jobs of a duty that are due until this time.
async fn rows_until(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<JobRow>, StoreError> {
    read(session, action, text, &[until.0.into(), row_limit(limit).into()], JobRow::decode).await
}

/// Does the same for what was extended last so long before `until` that it is lost, by elapsed time.
async fn rows_lapsed(
    session: &mut Session,
    action: &'static str,
    text: &Text,
    until: Moment,
    limit: usize,
) -> Result<Vec<JobRow>, StoreError> {
    let steps = until.steps_forward().map(Arg::from);
    let values: Vec<Arg<'_>> =
        [until.at.0.into(), row_limit(limit).into()].into_iter().chain(steps).collect();
    read(session, action, text, &values, JobRow::decode).await
}

/// Performs one batch of a duty: changes at most `limit` rows, and returns the number of changed rows. The inner error is
/// [`StoreError::Deposed`] when the term has ended; then nothing was changed.
pub(in super::super) async fn perform(
    session: &mut Session,
    unit: &mut Unit,
    duty: Duty,
    term: &Term,
    moment: Moment,
    limit: usize,
) -> Result<Result<usize, StoreError>, StoreError> {
    if !leader::holds(session, term).await? {
        return Ok(Err(StoreError::Deposed));
    }
    let now = moment.at;
    let done = match duty {
        Duty::PromoteDue => promote_due(session, unit, now, limit).await,
        Duty::ReapExpired => reap(session, unit, moment, limit).await,
        Duty::BoundWaits => bound_waits(session, unit, moment, limit).await,
        Duty::ExpireJobs => expire_jobs(session, unit, now, limit).await,
        Duty::ExpireReviews => reviews::expire(session, unit, now, limit).await,
        Duty::RemindReviews => reviews::remind(session, unit, now, limit).await,
        Duty::SetAsideReviews => reviews::set_aside(session, unit, now, limit).await,
        Duty::TimeOutJobs => {
            let late = delegations::time_out(session, unit, now, limit).await?;
            Ok(late + time_out::apply(session, unit, moment, limit.saturating_sub(late)).await?)
        }
        Duty::Prune { before } => prune::apply(session, before, now, limit).await,
        Duty::FindLostWaits => budgets::find_lost(session, unit, now).await,
        Duty::EndBatches => batches::end(session, unit, now, limit).await,
        // On the connections that read: see engine/numbering.rs.
        Duty::NumberCommits => Ok(0),
        Duty::FoldStatistics { until } => statistics::fold(session, until, limit).await,
    };
    done.map(Ok)
}

/// `scheduled → available` and `retryable → available`. Also resumes jobs that wait for a budget's next period or for the end of
/// a circuit breaker's refusals, and opens limits whose time is over.
pub(in super::super) async fn promote_due(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let opened = open_limits(session, unit, now).await?;
    let rows = rows_until(session, "promote due jobs", &sql::LOCK_DUE_JOBS, now, limit).await?;
    let promoted = promote(session, unit, rows, now).await?;
    let mut own = Unit::default();
    let resumed = budgets::resume_due(session, &mut own, now, limit).await?;
    unit.absorb(own);
    let released = breakers::release_due(session, unit, now, limit).await?;
    Ok(opened + promoted + resumed + released)
}

/// Opens the rate limits and queues whose limit has ended at `now`, so that claims find their jobs again. Returns the number of
/// opened limits.
async fn open_limits(session: &mut Session, unit: &mut Unit, now: Timestamp) -> Result<usize, StoreError> {
    let values = [now.0.into()];
    let mut opened = 0;
    for text in [&sql::UPDATE_OPENED_RATE_KEYS, &sql::UPDATE_OPENED_QUEUES] {
        opened += session.execute("open limits", text, Args::Values(&values)).await?;
    }
    if opened > 0 {
        unit.rings.push(Ring::Available);
    }
    Ok(usize::try_from(opened).unwrap_or(usize::MAX))
}

/// Does the same for the jobs that a claim may take, so that a due job can be claimed before the scheduler has promoted it.
/// `wanted` are the arguments of the statement: kind, queue, limit and now.
pub(in super::super) async fn promote_for_claim(
    session: &mut Session,
    rings: &mut Vec<Ring>,
    wanted: &[Arg<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows =
        read(session, "promote due jobs", &sql::LOCK_DUE_JOBS_OF_QUEUE, wanted, JobRow::decode).await?;
    let mut unit = Unit::default();
    promote(session, &mut unit, rows, now).await?;
    rings.append(&mut unit.rings);
    Ok(())
}

/// Moves these jobs to `available` and records their events.
async fn promote(
    session: &mut Session,
    unit: &mut Unit,
    rows: Vec<JobRow>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let due: Vec<(i64, JobState)> = rows.iter().map(|job| (job.seq, job.state)).collect();
    unit.take_in(session, rows).await?;
    for (seq, state) in &due {
        let (trigger, reason) = match state {
            JobState::Scheduled => (Trigger::Promote, "scheduled"),
            _ => (Trigger::RetryDue, "retry"),
        };
        unit.change_job(*seq)?.step(trigger, now)?;
        unit.note(*seq, EventBody::JobAvailable(Reason::of(reason)), now)?;
        unit.rings.push(Ring::Available);
    }
    unit.flush(session).await?;
    Ok(due.len())
}

/// Takes jobs back whose leases have expired, and jobs of workers over HTTP that have not reported for too long.
pub(in super::super) async fn reap(
    session: &mut Session,
    unit: &mut Unit,
    moment: Moment,
    limit: usize,
) -> Result<usize, StoreError> {
    let now = moment.at;
    let mut rows = rows_lapsed(session, "reap expired leases", &sql::LOCK_LAPSED_JOBS, moment, limit).await?;
    let since = Moment { at: now.plus_ms(-WorkerBeat::HTTP_SILENT_MS), ..moment };
    let (action, text) = ("reap leases of silent workers", &sql::LOCK_JOBS_OF_SILENT_WORKERS);
    let silent = rows_lapsed(session, action, text, since, limit.saturating_sub(rows.len())).await?;
    let known: HashSet<i64> = rows.iter().map(|job| job.seq).collect();
    rows.extend(silent.into_iter().filter(|job| !known.contains(&job.seq)));
    lapse(session, unit, rows, now).await
}

/// Bounds what was written before the clock stepped back. A lease ends at the latest after its length from now: a living worker
/// extends it before, and that of a dead one does not last longer by the step. Shortly after a step, retries and breakers
/// are bounded as well.
async fn bound_waits(
    session: &mut Session,
    unit: &mut Unit,
    moment: Moment,
    limit: usize,
) -> Result<usize, StoreError> {
    let now = moment.at;
    let values = [now.0.into(), now.plus_ms(ADOPTED_MS).0.into(), row_limit(limit).into()];
    let args = || Args::Values(&values);
    let mut bounded = session.execute("bound leases", &sql::UPDATE_BOUNDED_LEASES, args()).await?;
    let stepped_lately = |step: &ClockStep| (0..BOUNDED_MS).contains(&now.since(step.noticed_at));
    if moment.steps.back.as_ref().is_some_and(stepped_lately) {
        bounded += session.execute("bound retries", &sql::UPDATE_BOUNDED_RETRIES, args()).await?;
        breakers::close_open(session, unit, now).await?;
    }
    // The clock shows the ends of these attempts later by the step, so none of them is due before.
    if moment.step_back().1 > 0 {
        time_out::apply(session, unit, moment, limit).await?;
    }
    if bounded > 0 {
        unit.rings.push(Ring::Due);
    }
    Ok(usize::try_from(bounded).unwrap_or(usize::MAX))
}

/// Takes back every job of our own workers, also those whose leases have not expired. Jobs of workers over HTTP keep their
/// leases, because these workers run in processes of their own.
pub(in super::super) async fn release_all(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let ever = Moment { at: Timestamp(i64::MAX), steps: ClockSteps::default() };
    let (action, text) = ("reap all leases", &sql::LOCK_LAPSED_JOBS);
    let mut rows = rows_lapsed(session, action, text, ever, usize::MAX).await?;
    rows.retain(|job| job.engagement_seq.is_some());
    lapse(session, unit, rows, now).await
}

/// Ends the leases of these jobs: releases their reservations, notifies their workers, and decides about the next attempt.
async fn lapse(
    session: &mut Session,
    unit: &mut Unit,
    rows: Vec<JobRow>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let seqs: Vec<i64> = rows.iter().map(|job| job.seq).collect();
    let plain = rows.iter().filter(|job| job.engagement_seq.is_none()).map(|job| job.seq).collect();
    let policies = remote::retry_policies(session, plain).await?;
    unit.take_in(session, rows).await?;
    for seq in &seqs {
        unit.give_back(*seq)?;
        let job = unit.change_job(*seq)?;
        let (worker, token) = (job.worker_id.clone(), job.lease_token.clone());
        job.lapses += 1;
        unit.note(*seq, EventBody::LeaseExpired(Lapsed { worker_id: worker }), now)?;
        match policies.get(seq) {
            Some(Ok(policy)) => lapse_plain(unit, *seq, policy, now)?,
            Some(Err(why)) => unreadable::discard(unit, *seq, why, now)?,
            None => lapse_agent(session, unit, *seq, now).await?,
        }
        unit.rings.extend(token.map(Ring::Revoked));
    }
    unit.flush(session).await?;
    Ok(seqs.len())
}

/// `active → available` after the first lost lease. After further ones in a row `active → available → scheduled`, with a growing
/// delay. After the last permitted one the job is paused for an operator, because it may be the cause that its workers die. A
/// lost lease is no failure of the job, so the retry policy does not apply.
async fn lapse_agent(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let job = unit.change_job(seq)?;
    let (lapses, id) = (job.lapses, job.id.clone());
    job.step(Trigger::LeaseExpired, now)?;
    if lapses >= MAX_LAPSES {
        control::hold(session, unit, seq, true).await?;
        let reason = format!(
            "{lapses} workers in a row lost this job before they could commit anything, the last two while they ran \
             nothing else. It may be the cause that they end. Look at the workers' logs, then resume or cancel the job"
        );
        tracing::error!(job = %id, lapses, "a job that may kill its workers is held for an operator");
        return unit.note(seq, EventBody::AgentPaused(Reason::of(reason)), now);
    }
    let delay_ms = usize::try_from(lapses - 1).ok().and_then(|at| DELAYS_MS.get(at)).copied().unwrap_or(0);
    if delay_ms == 0 {
        unit.rings.push(Ring::Available);
        return Ok(());
    }
    let job = unit.change_job(seq)?;
    job.step(Trigger::Reschedule, now)?;
    job.run_at = now.plus_ms(delay_ms);
    let later = Rescheduled { reason: "lease_expired".to_owned(), scheduled_at: job.run_at.to_rfc3339() };
    unit.rings.push(Ring::Due);
    unit.note(seq, EventBody::JobRescheduled(later), now)
}

/// For a plain job a lost lease is a failed attempt. The next attempt may begin at once; after the last one the job is discarded
/// (OJS worker protocol §6.4).
fn lapse_plain(unit: &mut Unit, seq: i64, policy: &RetryPolicy, now: Timestamp) -> Result<(), StoreError> {
    let job = unit.change_job(seq)?;
    let held = job.lease_ms.unwrap_or_default();
    let message = format!(
        "its worker neither settled it nor extended its lease of {held} ms, or sends no heartbeats; it may have died"
    );
    let error = JobError::new(FailureKind::Silence, message);
    if job.attempt >= i64::from(policy.max_attempts) {
        return turns::settle(unit, seq, &Settlement::Discard { error }, now);
    }
    job.failures += 1;
    unit.error(seq, &error, now)?;
    unit.change_job(seq)?.step(Trigger::LeaseExpired, now)?;
    unit.rings.push(Ring::Available);
    Ok(())
}

/// Any non-terminal state `→ discarded`, for jobs whose `expires_at` has passed.
pub(in super::super) async fn expire_jobs(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    // The jobs that work for them are locked in the order in which a tree of jobs ends, here as everywhere. So two transactions
    // never wait for each other.
    let values = [now.0.into(), row_limit(limit).into()];
    let (action, text) = ("look for parents", &sql::SELECT_EXPIRING_PARENTS);
    let parents = read(session, action, text, &values, |row| rows::get::<String>(row, "id").map(JobId));
    let parents = parents.await?;
    delegations::lock_tree(session, &parents).await?;
    let rows = rows_until(session, "expire jobs", &sql::LOCK_EXPIRING_JOBS, now, limit).await?;
    let seqs: Vec<i64> = rows.iter().map(|job| job.seq).collect();
    unit.take_in(session, rows).await?;
    for seq in &seqs {
        unit.give_back(*seq)?;
        let job = unit.change_job(*seq)?;
        let (previous, token) = (job.state, job.lease_token.clone());
        if previous == JobState::Pending {
            reviews::close(session, *seq, now).await?;
        }
        let job = unit.change_job(*seq)?;
        job.step(Trigger::Expire, now)?;
        job.dead_letter = false;
        let error = JobError::new(FailureKind::Expired, "the job's expires_at passed before it ended");
        unit.error(*seq, &error, now)?;
        unit.note(*seq, EventBody::JobExpired(Ended { previous_state: previous }), now)?;
        unit.rings.extend(token.map(Ring::Revoked));
    }
    unit.flush(session).await?;
    Ok(seqs.len())
}
