//! The core: a claimed job runs turn after turn, each through the seven phases, until it settles.
//!
//! `run_job` runs one claim, in this order:
//!
//! 1. `begin` takes the claim and reads what an unfinished turn needs.
//! 2. `drive` runs turns. `one_turn` runs the phases that have no checkpoint yet; then `verdict` decides: another
//!    turn, the result, or a failure.
//! 3. `conclude` commits the settlement, together with everything that is not durable yet.
//!
//! Three things end the turns early: a [`Signal`] of the worker, the end of the attempt's time, and a [`Stop`] that a
//! phase returns. A phase never settles the job itself; it returns a [`Stop`], and `conclude` decides its consequence.

mod begin;
mod exceeded;
mod failure;
mod handoff;
pub mod rerun;

use crate::deps::Deps;
use crate::flow;
use crate::phases;
use crate::phases::verdict::{self, Verdict};
use crate::policy::{self, Act};
use crate::state::deadline::Deadline;
use crate::state::signals::{Signal, Signals};
use crate::state::{Claimed, Outbox, Stop, Turn, TurnHistory, trace};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, JobId, Lease, Phase, RecordEnd, Settlement, TurnWrite};
use turnstone_store::{Claim, LedgerError};
use turnstone_telemetry::names;

/// Runs a claimed job until its lease ends. It has no result, because its caller has nothing left to do: the outcome of
/// the job is in the store, and a reason why there is none is logged.
pub fn run_job(deps: Arc<Deps>, claim: Claim, signals: Signals) -> impl Future<Output = ()> + Send {
    let timeout = claim.timeout_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let (id, lease) = (claim.job.clone(), claim.lease.clone());
    let record_end = claim.engagement.as_ref().map(|side| side.record_end);
    // Boxed, so that the future of a waiting turn reserves no memory for the claim.
    let begun = Box::pin(begin::begin(Arc::clone(&deps), claim));
    async move {
        let stopped = match begun.await {
            Ok(Some(mut turn)) => {
                turn.outbox.claimed.slot = signals.slot.clone();
                turn.outbox.draining = signals.draining.clone();
                let span = trace::invoke(&mut turn.outbox.claimed);
                let timeout = AttemptTimeout::of(&turn.outbox.claimed, timeout);
                run_turns(turn, timeout, &signals).instrument(span).await
            }
            // A plain job. The claimer asks for jobs of agents only, so there is none.
            Ok(None) => Ok(()),
            Err(Stop::Fail(error)) if error.kind == FailureKind::Unreadable => {
                Box::pin(discard(&deps, &lease, record_end, error)).await
            }
            Err(stop) => Err(stop),
        };
        if let Err(stop) = stopped {
            if matches!(stop, Stop::LeaseLost(_)) {
                Box::pin(give_back(&deps, &lease)).await;
            }
            report(&id, stop);
        }
    }
}

/// Settles a job whose stored messages or journal cannot be decoded: no further attempt could read them either.
async fn discard(
    deps: &Deps,
    lease: &Lease,
    follows: Option<RecordEnd>,
    error: JobError,
) -> Result<(), Stop> {
    let settlement = Settlement::Discard { error };
    let write = TurnWrite { follows, ..TurnWrite::default() };
    deps.ledger.settle(lease, write, settlement, deps.clock.now()).await?;
    Ok(())
}

/// Gives a job back whose write was refused as one of a lost lease. If the database has lost commits of the job, its token still
/// fits. Then the job resumes from the stored record at once, and not only when the lease has expired. Otherwise this changes
/// nothing.
async fn give_back(deps: &Deps, lease: &Lease) {
    if let Err(error) = deps.ledger.release(std::slice::from_ref(lease), deps.clock.now()).await {
        tracing::warn!(job = %lease.job, %error, "a lost lease could not be given back; a job that still has it resumes when it has expired");
    }
}

/// Logs once why a lease ended without a settlement.
fn report(id: &JobId, stop: Stop) {
    match stop {
        Stop::LeaseLost(job) => tracing::warn!(
            %job,
            "lease lost (expired, cancelled, or the database has lost commits of the job); nothing more is written"
        ),
        Stop::Store(error) => {
            tracing::warn!(job = %id, %error, "the store failed; the job resumes when its lease has expired")
        }
        stop => {
            tracing::error!(job = %id, ?stop, "the job was not settled; it resumes when its lease has expired")
        }
    }
}

/// Runs turns until they end by themselves, the attempt's time is over, or a signal ends them; then settles the job.
/// After [`Signal::Lost`] and [`Signal::Revoked`] it writes nothing.
async fn run_turns(
    mut turn: Box<Turn>,
    timeout: Option<AttemptTimeout>,
    signals: &Signals,
) -> Result<(), Stop> {
    let deadline = Arc::clone(&turn.outbox.deadline);
    let driven = AssertUnwindSafe(drive(&mut turn, signals)).catch_unwind();
    let end = tokio::select! {
        biased;
        // Another worker may hold the lease now. After `Revoked` the job is settled already: nothing is left to log.
        ended = signals.any_of(&[Signal::Lost, Signal::Revoked]) => return match ended {
            Signal::Lost => Err(Stop::LeaseLost(turn.outbox.claimed.job.id.clone())),
            _ => Ok(()),
        },
        end = driven => end.unwrap_or_else(|_| Err(Stop::Fail(panicked()))),
        error = expired(timeout, &deadline) => Err(Stop::Fail(error)),
    };
    // After `Settling` the worker claims the next job for this slot. A turn that gives way for a more urgent job keeps
    // the slot until its settlement is committed. Otherwise a job that is not more urgent could be claimed first.
    if !matches!(end, Ok(Settlement::GiveWay)) {
        signals.raise(Signal::Settling);
    }
    // Boxed, so that the future of a waiting turn reserves no memory for the settlement.
    Box::pin(conclude(&mut turn.past, &mut turn.outbox, end)).await
}

fn panicked() -> JobError {
    JobError::new(
        FailureKind::Internal,
        "the worker panicked in this turn, which is a defect of Turnstone; the worker's log shows where",
    )
}

/// The longest that an attempt may take.
struct AttemptTimeout {
    after: Duration,
    /// The setting that demands it, for the error.
    setting: &'static str,
}

impl AttemptTimeout {
    /// Returns the shorter of two timeouts: the job's, and that of the agent's document (RS-42).
    fn of(claimed: &Claimed, job: Option<Duration>) -> Option<Self> {
        let of_job = job.map(|after| Self { after, setting: "the job's timeout_ms" });
        let document = claimed.agent.limits.attempt_timeout_ms.map(Duration::from_millis);
        let setting = "the document's max_execution_time_seconds, in milliseconds,";
        let of_document = document.map(|after| Self { after, setting });
        [of_job, of_document].into_iter().flatten().min_by_key(|timeout| timeout.after)
    }
}

/// Waits until the attempt's time is over and no write is in progress, and returns the error. Without a timeout it waits
/// for ever.
async fn expired(timeout: Option<AttemptTimeout>, deadline: &Deadline) -> JobError {
    let Some(AttemptTimeout { after, setting }) = timeout else { return std::future::pending().await };
    tokio::time::sleep(after).await;
    let message = format!("the attempt took longer than {setting} of {}", after.as_millis());
    deadline.pass(JobError::new(FailureKind::Timeout, message)).await
}

/// Logs that a job failed for good. The log has ids and the error's code only, because the error's message may quote
/// a client, a model or a tool.
fn log_discarded(claimed: &Claimed, code: &str) {
    tracing::warn!(
        job = %claimed.job.id,
        code = %code,
        agent = %claimed.agent.name,
        failures = claimed.job.failures + 1,
        "job discarded"
    );
}

/// Runs turn after turn until there is a result, or a reason to stop.
///
/// A check that has to precede every turn belongs beside `may_begin`. A rule about the step after a turn belongs in
/// `verdict`, which reads checkpoints only, so that it decides in the same way after a crash.
///
/// # Errors
/// The [`Stop`] of a phase or of a rule.
async fn drive(turn: &mut Turn, signals: &Signals) -> Result<Settlement, Stop> {
    policy::may(&turn.past, &mut turn.outbox, Act::Resume).await?;
    loop {
        // The steps below may wait, so the last answer of the turn before has to be durable.
        turn.outbox.secure().await?;
        if turn.flow.is_some() || turn.outbox.claimed.agent.flow.is_some() {
            Box::pin(flow::begin(&mut turn.past, &mut turn.outbox, &mut turn.flow)).await?;
        }
        let (span, began) = (trace::turn(&turn.outbox), Instant::now());
        phases::exec::delegates::look_up(&mut turn.outbox.claimed).await?;
        verdict::may_begin(&turn.past, &mut turn.outbox)?;
        one_turn(turn, signals).instrument(span).await?;
        trace::turned(&turn.outbox.claimed, began.elapsed());
        // All phases have run, but changes of the agent's state may have been rolled back.
        phases::persist::committed(&mut turn.bodies)?;
        if let Some(run) = turn.flow.as_deref_mut() {
            if let Some(result) = flow::verdict(&mut turn.bodies, &mut turn.outbox, run)? {
                return Ok(turn.outbox.claimed.complete(&result));
            }
            turn.advance(verdict::next_node(&turn.past, &turn.outbox)?);
            if signals.is_raised(Signal::GiveWay) {
                return Ok(Settlement::GiveWay);
            }
            continue;
        }
        let infer = turn.bodies.inferred()?;
        match verdict::verdict(&turn.past, &turn.outbox, &infer)? {
            Verdict::Complete(result) => return Ok(turn.outbox.claimed.complete(&result)),
            Verdict::HandedOver(result) => {
                let result = turn.outbox.screen_result(result)?;
                handoff::name(&turn.past, &mut turn.outbox);
                return Ok(turn.outbox.claimed.complete(&result));
            }
            Verdict::Continue(position) => {
                policy::may(&turn.past, &mut turn.outbox, Act::NextTurn).await?;
                turn.advance(position);
                if signals.is_raised(Signal::GiveWay) {
                    return Ok(Settlement::GiveWay);
                }
            }
            Verdict::Reask(position, why) => {
                verdict::reask(&mut turn.past, &mut turn.outbox, &why);
                turn.advance(position);
            }
        }
    }
}

/// Runs the phases of one turn that have no checkpoint yet.
///
/// The futures of the phases are part of this one, and box what few turns need. So a turn that waits for its model holds
/// little memory beside the call.
async fn one_turn(turn: &mut Turn, signals: &Signals) -> Result<(), Stop> {
    if phases::resol::is_to_be_recalled(&turn.bodies, &turn.outbox) {
        Box::pin(phases::resol::recall(turn)).await?;
    }
    while let Some(phase) = turn.outbox.next_phase() {
        turn.outbox.unless_draining()?;
        turn.outbox.enter_phase();
        let span = tracing::debug_span!(names::PHASE, { names::PHASE_NAME } = phase.as_str());
        match phase {
            Phase::Init => {
                span.in_scope(|| phases::init::run(&mut turn.outbox))?;
                trace::identified(&turn.outbox);
            }
            Phase::Norm => phases::norm::run(&mut turn.past, &mut turn.outbox).instrument(span).await?,
            Phase::Resol => phases::resol::run(turn).instrument(span).await?,
            Phase::Infer => {
                // Calls of earlier turns that an operator wants repeated: the model receives their new outcomes.
                phases::exec::again(&mut turn.past, &mut turn.bodies, &mut turn.outbox, signals)
                    .instrument(span.clone())
                    .await?;
                phases::infer::run(turn).instrument(span).await?;
            }
            Phase::Exec => phases::exec::run(turn).instrument(span).await?,
            Phase::Persist => {
                let Turn { past, bodies, outbox, flow } = turn;
                phases::persist::run(past, bodies, outbox, flow.as_deref()).instrument(span).await?;
            }
            Phase::Emit => {
                phases::emit::run(&turn.past, &mut turn.bodies, &mut turn.outbox).instrument(span).await?;
            }
        }
    }
    Ok(())
}

/// Decides the consequence of the end of the turns for the job, and commits it. This is the only place that makes a
/// settlement of a [`Stop`].
///
/// # Errors
/// [`Stop::LeaseLost`] and [`Stop::Store`]: the job is not settled, and its lease expires.
async fn conclude(
    past: &mut TurnHistory,
    outbox: &mut Outbox,
    end: Result<Settlement, Stop>,
) -> Result<(), Stop> {
    // The agent remembers only what it answered itself, and no value by which a handler replaces an error.
    let answered = matches!(&end, Ok(Settlement::Complete { .. }));
    let settlement = match end {
        Ok(settlement) => settlement,
        Err(Stop::Fail(error)) => {
            // The job, its events and its spans get the same error, without content that must not be shown.
            let error = outbox.claimed.unquoted(outbox.claimed.screen_error(error));
            trace::failed(&outbox.claimed, &error);
            outbox.fail_turn();
            failure::settlement(past, outbox, error)
        }
        Err(Stop::Park(wait)) => Settlement::Park { wait: *wait },
        Err(Stop::Drain) => Settlement::Yield,
        Err(stop @ (Stop::LeaseLost(_) | Stop::Store(_))) => return Err(stop),
    };
    let mut write = outbox.take_pending();
    write.remember = answered.then(|| handoff::remember(past, outbox)).flatten();
    let discarded = match &settlement {
        Settlement::Discard { error } => Some(error.code().to_owned()),
        _ => None,
    };
    match outbox
        .claimed
        .deps
        .ledger
        .settle(&outbox.lease, write, settlement, outbox.claimed.deps.clock.now())
        .await
    {
        Ok(()) => {
            if let Some(code) = discarded {
                log_discarded(&outbox.claimed, &code);
            }
            Ok(())
        }
        // A settlement reserves and pays nothing, so no budget refuses it.
        Err(LedgerError::BudgetExceeded { .. } | LedgerError::Unpriced { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
