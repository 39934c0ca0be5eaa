//! The core: a claimed job runs turn after turn, each through the seven phases, until it settles.

pub mod barrier;
mod confirmation;
mod content_filter;
pub mod conversation;
pub mod deadline;
pub mod ending;
pub mod escalation;
mod events;
mod exceeded;
pub mod exposes;
pub mod failure;
pub mod guard;
mod handoff;
pub mod memory;
pub mod place;
pub mod rerun;
pub mod reviewers;
pub mod session_state;
pub mod signals;
pub mod state;
pub mod stop;
pub mod trace;
pub mod verdict;

use crate::deps::Deps;
use crate::{flow, phases};
use deadline::Deadline;
use futures::FutureExt;
use signals::{Signal, Signals};
use state::Turn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stop::Stop;
use tracing::Instrument;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{JobError, JobId, Lease, Phase, Settlement, TurnWrite};
use turnstone_store::{Claim, LedgerError};
use turnstone_telemetry::names;
use verdict::Verdict;

/// Runs a claimed job until its lease ends.
pub fn run_job(deps: Arc<Deps>, claim: Claim, signals: Signals) -> impl Future<Output = ()> + Send {
    let timeout = claim.timeout_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let (id, lease) = (claim.job.clone(), claim.lease.clone());
    // Boxed, because a turn that waits for its model keeps no room for its claim.
    let begun = Box::pin(Turn::begin(Arc::clone(&deps), claim));
    async move {
        let stopped = match begun.await {
            Ok(Some(mut turn)) => {
                turn.place = signals.place.clone();
                turn.draining = signals.draining.clone();
                let span = trace::invoke(&mut turn);
                let timeout = AttemptTimeout::of(&turn, timeout);
                run_turns(turn, timeout, &signals).instrument(span).await
            }
            // The claimer claims only jobs of agents.
            Ok(None) => Ok(()),
            Err(Stop::Fail(error)) if error.kind == FailureKind::Unreadable => {
                Box::pin(discard(&deps, &lease, error)).await
            }
            Err(stop) => Err(stop),
        };
        if let Err(stop) = stopped {
            report(&id, stop);
        }
    }
}

/// Settles a job whose past cannot be read.
async fn discard(deps: &Deps, lease: &Lease, error: JobError) -> Result<(), Stop> {
    let settlement = Settlement::Discard { error };
    deps.ledger.settle(lease, TurnWrite::default(), settlement, deps.clock.now()).await?;
    Ok(())
}

/// Logs once why a lease ended without a settlement.
fn report(id: &JobId, stop: Stop) {
    match stop {
        Stop::LeaseLost(job) => tracing::warn!(
            %job,
            "lease lost (expired or cancelled); nothing more is written"
        ),
        Stop::Store(error) => {
            tracing::warn!(job = %id, %error, "the store failed; the lease will run out")
        }
        stop => tracing::error!(job = %id, ?stop, "the job was not settled; its lease will run out"),
    }
}

/// Runs turns until they end by themselves, take too long, or are ended from outside.
async fn run_turns(
    mut turn: Box<Turn>,
    timeout: Option<AttemptTimeout>,
    signals: &Signals,
) -> Result<(), Stop> {
    let deadline = Arc::clone(&turn.deadline);
    let driven = AssertUnwindSafe(drive(&mut turn, signals)).catch_unwind();
    let end = tokio::select! {
        biased;
        // Another worker may hold the lease now: nothing is written.
        ended = signals.any_of(&[Signal::Lost, Signal::Revoked]) => return match ended {
            Signal::Lost => Err(Stop::LeaseLost(turn.job.id.clone())),
            _ => Ok(()),
        },
        end = driven => end.unwrap_or_else(|_| Err(Stop::Fail(panicked()))),
        error = expired(timeout, &deadline) => Err(Stop::Fail(error)),
    };
    // A turn that makes way keeps its slot until that is written. Otherwise a job behind it that is no more
    // urgent could take the slot.
    if !matches!(end, Ok(Settlement::GiveWay)) {
        signals.raise(Signal::Settling);
    }
    // Boxed, because a turn that waits for its model keeps no room for its settlement.
    Box::pin(conclude(&mut turn, end)).await
}

fn panicked() -> JobError {
    JobError::new(
        FailureKind::Internal,
        "the worker hit a defect of its own (a panic) in this turn; its log has the place",
    )
}

/// The time of an attempt, and the setting that bounds it.
struct AttemptTimeout {
    after: Duration,
    setting: &'static str,
}

impl AttemptTimeout {
    /// Returns the shorter of the job's time and that of the agent's document (RS-42).
    fn of(turn: &Turn, job: Option<Duration>) -> Option<Self> {
        let of_job = job.map(|after| Self { after, setting: "the job's timeout_ms" });
        let document = turn.agent.limits.attempt_timeout_ms.map(Duration::from_millis);
        let setting = "the document's max_execution_time_seconds, in milliseconds,";
        let of_document = document.map(|after| Self { after, setting });
        [of_job, of_document].into_iter().flatten().min_by_key(|timeout| timeout.after)
    }
}

async fn expired(timeout: Option<AttemptTimeout>, deadline: &Deadline) -> JobError {
    let Some(AttemptTimeout { after, setting }) = timeout else { return std::future::pending().await };
    tokio::time::sleep(after).await;
    let message = format!("the attempt took longer than {setting} of {}", after.as_millis());
    deadline.pass(JobError::new(FailureKind::Timeout, message)).await
}

/// Logs that a job failed for good: only ids and the error's code, because its message may hold content.
fn tell_discarded(turn: &Turn, code: &str) {
    tracing::warn!(
        job = %turn.job.id,
        code = %code,
        agent = %turn.agent.name,
        failures = turn.job.failures + 1,
        "job discarded"
    );
}

/// Runs turn after turn until there is a result or a reason to stop.
async fn drive(turn: &mut Turn, signals: &Signals) -> Result<Settlement, Stop> {
    escalation::not_refused(turn)?;
    loop {
        turn.secure().await?;
        if turn.flow.is_some() || turn.agent.flow.is_some() {
            Box::pin(flow::begin(turn)).await?;
        }
        let (span, began) = (trace::turn(turn), Instant::now());
        phases::exec::delegates::look_up(turn).await?;
        verdict::may_begin(turn)?;
        one_turn(turn, signals).instrument(span).await?;
        trace::turned(turn, began.elapsed());
        phases::persist::committed(turn)?;
        if turn.flow.is_some() {
            if let Some(result) = flow::verdict(turn)? {
                return Ok(turn.complete(&result));
            }
            turn.advance(verdict::next_node(turn)?);
            if signals.is_raised(Signal::GiveWay) {
                return Ok(Settlement::GiveWay);
            }
            continue;
        }
        let infer = turn.inferred()?;
        match verdict::verdict(turn, &infer)? {
            Verdict::Complete(result) => return Ok(turn.complete(&result)),
            Verdict::HandedOver(result) => {
                let result = turn.screen_result(result)?;
                handoff::name(turn);
                return Ok(turn.complete(&result));
            }
            Verdict::Continue(position) => {
                confirmation::confirmed(turn)?;
                turn.advance(position);
                if signals.is_raised(Signal::GiveWay) {
                    return Ok(Settlement::GiveWay);
                }
            }
            Verdict::Reask(position, why) => {
                verdict::reask(turn, &why);
                turn.advance(position);
            }
        }
    }
}

/// Runs the remaining phases of one turn. Their futures are part of this one, and box what few turns need: a turn
/// that waits for its model holds little more than the call.
async fn one_turn(turn: &mut Turn, signals: &Signals) -> Result<(), Stop> {
    if phases::resol::is_to_be_recalled(turn) {
        Box::pin(phases::resol::recall(turn)).await?;
    }
    while let Some(phase) = turn.next_phase() {
        turn.unless_draining()?;
        turn.enter_phase();
        let span = tracing::debug_span!(names::PHASE, { names::PHASE_NAME } = phase.as_str());
        match phase {
            Phase::Init => {
                span.in_scope(|| phases::init::run(turn))?;
                trace::identified(turn);
            }
            Phase::Norm => phases::norm::run(turn).instrument(span).await?,
            Phase::Resol => phases::resol::run(turn).instrument(span).await?,
            Phase::Infer => {
                phases::exec::again(turn, signals).instrument(span.clone()).await?;
                phases::infer::run(turn, &signals.draining).instrument(span).await?;
            }
            Phase::Exec => phases::exec::run(turn, &signals.draining).instrument(span).await?,
            Phase::Persist => phases::persist::run(turn).instrument(span).await?,
            Phase::Emit => phases::emit::run(turn).instrument(span).await?,
        }
    }
    Ok(())
}

/// Decides, in one place, the consequence of a lease's end for the job.
async fn conclude(turn: &mut Turn, end: Result<Settlement, Stop>) -> Result<(), Stop> {
    // A value that replaces an error is no answer of the agent.
    let answered = matches!(&end, Ok(Settlement::Complete { .. }));
    let settlement = match end {
        Ok(settlement) => settlement,
        Err(Stop::Fail(error)) => {
            // The job and everything outside see the same error.
            let error = turn.unquoted(turn.screen_error(error));
            trace::failed(turn, &error);
            turn.fail_turn();
            failure::settlement(turn, error)
        }
        Err(Stop::Park(wait)) => Settlement::Park { wait: *wait },
        Err(Stop::Drain) => Settlement::Yield,
        Err(stop @ (Stop::LeaseLost(_) | Stop::Store(_))) => return Err(stop),
    };
    let mut write = turn.take_pending();
    write.remember = answered.then(|| memory::remember(turn)).flatten();
    let discarded = match &settlement {
        Settlement::Discard { error } => Some(error.code().to_owned()),
        _ => None,
    };
    match turn.deps.ledger.settle(&turn.lease, write, settlement, turn.deps.clock.now()).await {
        Ok(()) => {
            if let Some(code) = discarded {
                tell_discarded(turn, &code);
            }
            Ok(())
        }
        Err(LedgerError::BudgetExceeded { .. } | LedgerError::Unpriced { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
