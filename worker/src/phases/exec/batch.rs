//! Runs calls of tools: a single one, or all of an answer that may run in parallel (OSSA §1.5, RS-24).
//!
//! [`run`] first prepares each call from its journal row: it may be new, refused, interrupted, or settled already. Then it
//! runs rounds until each call has its outcome. A round has these steps:
//!
//! 1. `admit`: the circuit breaker of each tool lets its call through, or refuses it.
//! 2. Paid answers become durable, and no call begins while a freeze holds.
//! 3. `send`: one barrier makes every intent durable, and pays for the calls. No request leaves yet.
//! 4. `invoke`: the requests are sent, at most eight at once.
//! 5. `judge`: each result ends its call, or its call joins the next round, with the same tool or with a fallback.
//! 6. `deliver_in_order` and a barrier: the outcomes become messages and durable.
//!
//! The model receives the outcomes in the order of its requests, whichever call returned first.

use super::identity::RemotePart;
use super::remedy::{FailedCall, Remedy, remedy};
use super::send::{self, Fate, Made, News};
use super::tool_outcome::{Ending, Over, deliver};
use super::{admission, artifacts, circuit, remote_calls, tries};
use crate::breakers::Success;
use crate::phases::resol;
use crate::policy::restriction::{self, Checked};
use crate::state::journal::{self, Call};
use crate::state::{Bodies, Claimed, Outbox, Secured, Stop, Turn, TurnHistory, pay};
use crate::tool::Tool;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use turnstone_domain::CallId;
use turnstone_domain::agent::Capability;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{ToolCallState, ToolOutcome};
use turnstone_store::breakers::Passage;

/// The most calls that a round begins. All of them leave right after its barrier, so that no call waits for another
/// one while it is journalled as sent.
const AT_ONCE: usize = 8;

/// A call of the batch and its progress.
struct Flight {
    call: Call,
    step: Step,
}

impl Flight {
    /// Returns the most tokens that a remote agent may spend on it; `None` for a call of any other tool.
    fn tokens(&self) -> Option<i64> {
        match &self.step {
            Step::Ready(ready) => ready.tool.tokens(),
            Step::Over(_) | Step::Returned => None,
        }
    }

    /// Returns true if it runs in this round.
    fn is_in_round(&self) -> bool {
        matches!(&self.step, Step::Ready(ready) if ready.in_round)
    }

    /// Returns true if no work for it runs on this server now.
    fn is_remote(&self) -> bool {
        match &self.step {
            Step::Ready(ready) => ready.tool.tokens().is_some(),
            Step::Over(_) | Step::Returned => true,
        }
    }
}

/// The progress of a call.
enum Step {
    /// It runs in the next round.
    Ready(Box<Ready>),
    /// Its outcome is known, but the model has not received it yet.
    Over(Box<Over>),
    /// The model has received its outcome.
    Returned,
}

/// The tool to call next, and the result of earlier tries.
struct Ready {
    tool: Arc<dyn Tool>,
    capability: Capability,
    /// The number of tries of this tool that failed.
    tries: u32,
    /// True if this tool is the fallback of the one that the model requested.
    replaced: bool,
    /// The permission of its circuit breaker.
    passage: Passage,
    /// The tokens reserved for it, when it is a remote agent.
    set_aside: i64,
    /// The tokens charged for it so far. Another try continues the same remote engagement, whose count includes them.
    booked: i64,
    /// The handle by which a remote agent is asked about the work that it has begun.
    handle: Option<Value>,
    /// True if remote work may exist without a handle: a request was sent, and its outcome is unknown.
    doubtful: bool,
    /// True if a remote agent began to work in the round before. This round sends no new request, and waits for its end.
    continues: bool,
    /// True if it runs in this round.
    in_round: bool,
}

/// Runs calls until each has its outcome and the model has received it. Each call comes with its position in the model's
/// answer; a call whose position is not below `allowed` is refused.
///
/// # Errors
/// As [`super::run`].
pub async fn run(
    turn: &mut Turn,
    requested: Vec<(usize, RequestedCall)>,
    allowed: usize,
    draining: &CancellationToken,
) -> Result<(), Stop> {
    let mut flights = Vec::with_capacity(requested.len());
    for (position, call) in requested {
        let flight =
            prepare(&mut turn.past, &mut turn.bodies, &mut turn.outbox, position, call, position < allowed)?;
        if matches!(flight.step, Step::Ready(_)) {
            remote_calls::check_answers(&turn.past, &mut turn.outbox, &flight.call).await?;
        }
        flights.push(flight);
    }
    let mut reviewed = reviewed(&turn.outbox.claimed, &turn.bodies, &flights);
    let mut outside = None;
    loop {
        begin_round(&mut turn.outbox, &mut flights).await?;
        admit(&turn.past, &mut turn.bodies, &mut turn.outbox, &mut flights).await?;
        deliver_in_order(turn, &mut flights)?;
        artifacts::reveal(&mut turn.outbox, &std::mem::take(&mut reviewed)).await?;
        if flights.iter().all(|flight| matches!(flight.step, Step::Returned)) {
            return Ok(());
        }
        turn.outbox.secure().await?;
        send(&mut turn.outbox, &mut flights).await?;
        // A round of remote calls alone needs no slot of this worker. It keeps the slot if too many such
        // rounds wait already, and the worker claims no more jobs than it has slots.
        if outside.is_none() && flights.iter().all(Flight::is_remote) {
            outside = turn.outbox.claimed.deps.toolbox.room_outside();
        }
        if outside.is_some() {
            turn.outbox.claimed.slot.release();
        }
        let returned = invoke(&turn.outbox.claimed, &turn.past, turn.outbox.secured()?, &flights).await;
        let only_begun = returned.iter().all(|(_, made)| matches!(made.news, Some(News::Begun(_))));
        // The turn takes a slot again, unless its remote agents have only begun to work.
        tokio::select! {
            () = turn.outbox.claimed.slot.take_again(), if !only_begun => {}
            () = std::future::ready(()), if only_begun => {}
            // A draining worker waits for no slot: the outcomes become durable without one.
            () = draining.cancelled() => {}
        }
        if turn.outbox.claimed.slot.is_taken() {
            outside = None;
        }
        let mut successes = Vec::new();
        let judged =
            judge(&mut turn.past, &mut turn.bodies, &mut turn.outbox, &mut flights, returned, &mut successes)
                .await;
        if judged.is_ok() {
            deliver_in_order(turn, &mut flights)?;
            // The outcomes are durable before any step relies on them.
            turn.outbox.barrier().await?;
        }
        circuit::learn(&mut turn.outbox, successes).await?;
        let wait = judged?;
        if let Some(wait) = wait {
            pause(turn.outbox.secured()?, wait, draining).await?;
        }
    }
}

/// Chooses the calls of the next round: those that continue, and the first [`AT_ONCE`] others. If the round begins a
/// call, it waits for the end of a freeze.
async fn begin_round(outbox: &mut Outbox, flights: &mut [Flight]) -> Result<(), Stop> {
    let mut begun = 0;
    for flight in flights {
        let Step::Ready(ready) = &mut flight.step else { continue };
        ready.in_round = ready.continues || begun < AT_ONCE;
        begun += usize::from(ready.in_round && !ready.continues);
    }
    if begun == 0 {
        return Ok(());
    }
    outbox.secure().await?;
    outbox.unless_frozen().await
}

/// Returns the settled calls that wait for a review of their output. Their files become visible once the model has
/// received the output, because the review was approved then.
fn reviewed(claimed: &Claimed, bodies: &Bodies, flights: &[Flight]) -> Vec<CallId> {
    let waits = |flight: &&Flight| {
        let capability = resol::capability(claimed, bodies, &flight.call.asked.name);
        matches!(&flight.step, Step::Over(over) if matches!(over.ending, Ending::Recalled))
            && capability.is_some_and(|own| own.output_restriction.is_reviewed() && own.collect_results)
    };
    flights.iter().filter(waits).map(|flight| flight.call.asked.call_id.clone()).collect()
}

/// Waits before the next try; the worker's drain ends the wait.
async fn pause(_: Secured<'_>, wait: Duration, draining: &CancellationToken) -> Result<(), Stop> {
    tokio::select! {
        biased;
        () = draining.cancelled() => Err(Stop::Drain),
        () = tokio::time::sleep(wait) => Ok(()),
    }
}

/// Returns the progress of a call, by its journal row when an earlier attempt wrote one.
///
/// - Settled: the model only has to receive the outcome.
/// - Sent, without an outcome: it is repeated if it is idempotent, or a remote agent works for it. Otherwise a reviewer is
///   asked; without an approval its outcome stays unknown.
/// - New, or planned: its arguments and restrictions are checked.
fn prepare(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    position: usize,
    mut requested: RequestedCall,
    allowed: bool,
) -> Result<Flight, Stop> {
    let row = past.recalled_calls.iter().find(|row| row.call_id == requested.call_id).cloned();
    let replaced = row.as_ref().is_some_and(|row| row.provider.is_some());
    if let Some(instead) = row.as_ref().and_then(|row| row.provider.clone()) {
        requested.name = instead;
    }
    let call =
        Call { asked: requested, position, journalled: row.as_ref().map(|row| row.state), stub_of: None };
    if let Some(row) = &row
        && let Some(outcome) = row.outcome.clone()
    {
        // An earlier attempt settled it before the model received its outcome.
        let over = Over::recalled(outcome, row.handled.clone(), row.duration_ms.unwrap_or(0));
        return Ok(Flight { call, step: Step::Over(Box::new(over)) });
    }
    admission::watch_repetition(&outbox.claimed, past, &call)?;
    let tried = row.as_ref().map(|row| row.tried.as_slice()).unwrap_or_default();
    let tries_of_tool = tried.iter().filter(|tried| tried.instead.is_some() == replaced).count();
    let known_failures = row.as_ref().map_or(0, admission::known_failures);
    let sent = row.as_ref().filter(|row| row.state == ToolCallState::Sent);
    let found = admission::callable(bodies, outbox, &call, allowed);
    let (tool, capability) = match (found, sent) {
        (Ok(found), _) => found,
        (Err(refusal), None) => return Ok(refused(bodies, outbox, call, refusal)),
        // The tool was removed or changed after the request was sent, and the request may have had its effect.
        (Err(_), Some(_)) => return Ok(unknown(past, outbox, call)),
    };
    let remote_calls::KnownRemoteCall { handle, booked } = remote_calls::known(past, &call.asked);
    match sent {
        // A remote agent works for it: no second request is sent, and the turn waits for its end.
        Some(_) if handle.is_some() => {}
        // It passed its restrictions before it was sent. It must have been idempotent then, and be so now.
        Some(sent) if sent.idempotent && admission::is_idempotent(&tool, &capability) => {}
        // One approval permits one request with an unknown outcome. Requests that are known to have failed need none.
        Some(sent) if restriction::may_resend(past, outbox, &call, sent.sends - known_failures)? => {}
        Some(_) => return Ok(unknown(past, outbox, call)),
        None => {
            if let Checked::Denied(refusal) = restriction::before(
                past,
                outbox,
                &call,
                &capability,
                admission::is_declared_idempotent(&tool, &capability),
            )? {
                return Ok(refused(bodies, outbox, call, refusal));
            }
        }
    }
    let tries = u32::try_from(tries_of_tool).unwrap_or(u32::MAX);
    let ready = Ready {
        tool,
        capability,
        tries,
        replaced,
        passage: Passage::Free,
        set_aside: 0,
        booked,
        handle,
        doubtful: sent.is_some() || tries_of_tool > 0,
        continues: false,
        in_round: false,
    };
    Ok(Flight { call, step: Step::Ready(Box::new(ready)) })
}

/// Journals a call that is refused before it runs. The model receives the refusal in the order of its requests.
fn refused(bodies: &Bodies, outbox: &mut Outbox, mut call: Call, refusal: ToolOutcome) -> Flight {
    let own = resol::capability(&outbox.claimed, bodies, &call.asked.name)
        .map(|capability| capability.errors.clone());
    // A refused call has no other try and no other tool. A handler may still replace its outcome.
    let failed = FailedCall { tries: 0, repeatable: false, replaced: true };
    let (outcome, handled) = match refusal.failure() {
        Some(FailureKind::ToolNotFound) => (refusal, None),
        _ => match remedy(&outbox.claimed.agent.errors, &own.unwrap_or_default(), refusal.clone(), failed) {
            Remedy::End(outcome, handled) => (outcome, handled),
            Remedy::Again(_) | Remedy::Instead(_) => (refusal, None),
        },
    };
    journal::plan(outbox, &mut call, false);
    let over = Over { outcome, handled, duration_ms: 0, ending: Ending::Refused };
    over.note(outbox, &call, false);
    Flight { call, step: Step::Over(Box::new(over)) }
}

/// The outcome for the model of a call that may have had its effect and may not be repeated.
const UNKNOWN: &str =
    "the outcome of this call is unknown: it may or may not have had its effect; do not repeat it";

/// Ends a call that was sent before a crash and may not be repeated: the model learns that its outcome is
/// unknown.
fn unknown(past: &TurnHistory, outbox: &mut Outbox, call: Call) -> Flight {
    let outcome = ToolOutcome::failed(FailureKind::Tool.code(), UNKNOWN);
    let over = Over::made(past, outbox, &call, &Capability::named(call.asked.name.clone()), outcome, None, 0);
    Flight { call, step: Step::Over(Box::new(over)) }
}

/// Asks the circuit breaker of each call's tool for permission. A refused call gets its fallback or its end.
async fn admit(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flights: &mut [Flight],
) -> Result<(), Stop> {
    for flight in flights {
        while let Step::Ready(ready) = &mut flight.step {
            if ready.continues || !ready.in_round {
                break;
            }
            let passage = circuit::pass(outbox, &ready.tool, &ready.capability).await?;
            ready.passage = passage;
            let Passage::Refused { until } = passage else { break };
            let outcome = circuit::open(&outbox.claimed, &flight.call, until);
            let failed = FailedCall { tries: ready.tries, repeatable: false, replaced: ready.replaced };
            match remedy(&outbox.claimed.agent.errors, &ready.capability.errors, outcome.clone(), failed) {
                Remedy::Instead(name) => {
                    abandon(outbox, &flight.call, ready);
                    replace(past, bodies, outbox, flight, name, &outcome, 0)?;
                    // The loop then asks for the fallback, whose breaker may be open as well. The barrier stands between,
                    // because one write may change a row of the journal only once.
                    outbox.barrier().await?;
                }
                Remedy::End(outcome, handled) => {
                    abandon(outbox, &flight.call, ready);
                    journal::plan(outbox, &mut flight.call, false);
                    let over = Over { outcome, handled, duration_ms: 0, ending: Ending::Refused };
                    over.note(outbox, &flight.call, false);
                    flight.step = Step::Over(Box::new(over));
                }
                Remedy::Again(_) => break,
            }
        }
    }
    Ok(())
}

/// Makes the intents of the round durable.
async fn send(outbox: &mut Outbox, flights: &mut [Flight]) -> Result<(), Stop> {
    let (mut leaving, mut aside) = (Vec::new(), 0);
    let remote = flights.iter().filter(|flight| flight.is_in_round() && flight.tokens().is_some()).count();
    let share = i64::try_from(remote.max(1)).unwrap_or(i64::MAX);
    for flight in flights {
        let most = flight.tokens();
        let Step::Ready(ready) = &mut flight.step else { continue };
        if !ready.in_round {
            continue;
        }
        let left = |most: i64| outbox.budget.left().map_or(most, |left| left / share);
        ready.set_aside = most.map_or(0, |most| most.min(left(most)).max(1));
        aside += ready.set_aside;
        leaving.push((flight.call.asked.call_id.clone(), flight.call.asked.name.clone()));
        if std::mem::take(&mut ready.continues) {
            continue;
        }
        let idempotent = admission::is_idempotent(&ready.tool, &ready.capability);
        let is_first = ready.tries == 0 && ready.handle.is_none();
        journal::record_sent(outbox, &mut flight.call, idempotent, is_first);
        remote_calls::record_sent(outbox, &flight.call.asked.call_id, &ready.tool, ready.handle.as_ref());
    }
    pay::barrier(outbox, leaving, aside).await
}

/// Runs the calls of the round; returns each result with the index of its flight.
async fn invoke(
    claimed: &Claimed,
    past: &TurnHistory,
    secured: Secured<'_>,
    flights: &[Flight],
) -> Vec<(usize, Made)> {
    let in_round = flights.iter().enumerate().filter(|(_, flight)| flight.is_in_round());
    let calls = in_round.filter_map(|(at, flight)| {
        let Step::Ready(ready) = &flight.step else { return None };
        let call = &flight.call.asked.call_id;
        let remote = RemotePart { call, set_aside: ready.set_aside, handle: ready.handle.as_ref() };
        Some(async move {
            (
                at,
                send::try_once(
                    claimed,
                    past,
                    secured,
                    &flight.call,
                    (&ready.tool, &ready.capability),
                    remote,
                )
                .await,
            )
        })
    });
    futures::future::join_all(calls).await
}

/// Decides about each call that returned. Returns the delay before the next round; `None` when no call needs one.
///
/// A call may have to park for a reviewer. Then the results of the others are journalled first, so none is lost.
async fn judge(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flights: &mut [Flight],
    returned: Vec<(usize, Made)>,
    successes: &mut Vec<Success>,
) -> Result<Option<Duration>, Stop> {
    let (mut wait, mut stop) = (None, None);
    for (at, mut made) in returned {
        let Some(flight) = flights.get_mut(at) else { continue };
        let files = std::mem::take(&mut made.artifacts);
        let files = match artifacts::admit(past, outbox, &flight.call, &mut made.outcome, files).await {
            Ok(files) => files,
            Err(refused) => {
                stop.get_or_insert(refused);
                Vec::new()
            }
        };
        made.outcome = outbox.screen_outcome(&flight.call.asked.name, made.outcome);
        let Step::Ready(ready) = &mut flight.step else { continue };
        let begun = matches!(made.news, Some(News::Begun(_)));
        pay::settle(outbox, &flight.call.asked, (ready.set_aside, made.tokens - ready.booked), !begun);
        ready.booked = ready.booked.max(made.tokens);
        match made.news.take() {
            Some(News::Begun(handle)) => {
                remote_calls::begun(past, outbox, &flight.call, &ready.tool, &handle);
                (ready.handle, ready.continues) = (Some(handle), true);
                wait = wait.max(Some(Duration::ZERO));
                continue;
            }
            Some(News::Asks(requested)) if remote_calls::may_ask(&outbox.claimed, bodies) => {
                if stop.is_none() {
                    stop = Some(remote_calls::ask(past, outbox, &flight.call, requested, ready.booked).await);
                }
                continue;
            }
            Some(News::Asks(requested)) => made.outcome = remote_calls::unasked(&requested),
            None => {}
        }
        ready.doubtful |= made.fate == Fate::Unknown;
        let repeatable = may_repeat(ready, made.fate);
        if let (Fate::Unknown, false, ToolOutcome::Error { message, .. }) =
            (made.fate, repeatable, &mut made.outcome)
        {
            *message = format!("{message}; {UNKNOWN}");
        }
        let is_open =
            circuit::count(outbox, (&ready.tool, &ready.capability), ready.passage, &made, successes).await?;
        // While the breaker is open another try would be refused: all tries count as used.
        let tries = if is_open { u32::MAX - 1 } else { ready.tries };
        let failed = FailedCall { tries, repeatable, replaced: ready.replaced };
        match remedy(&outbox.claimed.agent.errors, &ready.capability.errors, made.outcome.clone(), failed) {
            Remedy::Again(wait_ms) => {
                ready.tries += 1;
                let replaced = ready.replaced.then(|| flight.call.asked.name.clone());
                tries::tried(outbox, &flight.call, &made.outcome, made.duration_ms, replaced, None);
                tries::retrying(outbox, &flight.call, &made.outcome, Some((ready.tries, wait_ms)), None);
                flight.call.journalled = Some(ToolCallState::Planned);
                wait = wait.max(Some(Duration::from_millis(wait_ms)));
            }
            Remedy::Instead(name) => {
                remote_calls::over(outbox, &flight.call.asked.call_id, &ready.tool, ended(ready, &made));
                if let Err(parked) =
                    replace(past, bodies, outbox, flight, name, &made.outcome, made.duration_ms)
                {
                    stop.get_or_insert(parked);
                }
                wait = wait.max(Some(Duration::ZERO));
            }
            Remedy::End(outcome, handled) => {
                let capability = ready.capability.clone();
                remote_calls::over(outbox, &flight.call.asked.call_id, &ready.tool, ended(ready, &made));
                let over =
                    Over::made(past, outbox, &flight.call, &capability, outcome, handled, made.duration_ms);
                artifacts::keep(outbox, &flight.call, &over, files);
                flight.step = Step::Over(Box::new(over));
            }
        }
    }
    stop.map_or(Ok(wait), Err)
}

/// Returns true if the call may be sent once more. A request without effect always may. After an error that the tool
/// reported, the tool has to be idempotent, or the manifest to have a `retry_policy` for it. After an unknown outcome, the
/// tool has to be idempotent.
fn may_repeat(ready: &Ready, fate: Fate) -> bool {
    let idempotent = ready.handle.is_some() || admission::is_idempotent(&ready.tool, &ready.capability);
    match fate {
        Fate::Undone => true,
        Fate::Answered => idempotent || ready.capability.errors.retry.is_some(),
        Fate::Unknown => idempotent,
    }
}

/// Returns true if no remote agent can still work for a call that is over: it has answered, or never began.
fn ended(ready: &Ready, made: &Made) -> bool {
    matches!(made.outcome, ToolOutcome::Success { .. }) || (!ready.doubtful && ready.handle.is_none())
}

/// Cancels the remote work of a call that is neither repeated nor waited for.
fn abandon(outbox: &mut Outbox, call: &Call, ready: &Ready) {
    if ready.doubtful || ready.handle.is_some() {
        remote_calls::over(outbox, &call.asked.call_id, &ready.tool, false);
    }
}

/// Replaces the tool of a failed call by the fallback that a handler names. The checks of the fallback apply: arguments,
/// restrictions and reviews.
///
/// # Errors
/// [`Stop::Park`] when a reviewer has to approve the fallback; the replacement is recorded before.
fn replace(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flight: &mut Flight,
    name: String,
    failed: &ToolOutcome,
    duration_ms: i64,
) -> Result<(), Stop> {
    journal::plan(outbox, &mut flight.call, false);
    let requested = RequestedCall { name: name.clone(), ..flight.call.asked.clone() };
    let other = Call {
        asked: requested,
        position: flight.call.position,
        journalled: Some(ToolCallState::Planned),
        stub_of: None,
    };
    let Ok((tool, capability)) = admission::callable(bodies, outbox, &other, true) else {
        // The fallback does not accept this call, so the model receives the failure of the requested tool.
        let own = Capability::named(flight.call.asked.name.clone());
        let over = Over::made(past, outbox, &flight.call, &own, failed.clone(), None, duration_ms);
        flight.step = Step::Over(Box::new(over));
        return Ok(());
    };
    let declared = admission::is_declared_idempotent(&tool, &capability);
    let checked = restriction::before(past, outbox, &other, &capability, declared);
    if let Ok(Checked::Denied(outcome)) = checked {
        let over = Over { outcome, handled: None, duration_ms: 0, ending: Ending::Refused };
        over.note(outbox, &other, false);
        *flight = Flight { call: other, step: Step::Over(Box::new(over)) };
        return Ok(());
    }
    tries::tried(outbox, &flight.call, failed, duration_ms, None, Some(name.clone()));
    tries::retrying(outbox, &flight.call, failed, None, Some(name));
    let ready = Ready {
        tool,
        capability,
        tries: 0,
        replaced: true,
        passage: Passage::Free,
        set_aside: 0,
        booked: 0,
        handle: None,
        doubtful: false,
        continues: false,
        in_round: true,
    };
    *flight = Flight { call: other, step: Step::Ready(Box::new(ready)) };
    checked.map(|_| ())
}

/// Delivers outcomes to the model in the order of its requests, up to the first call that still runs.
fn deliver_in_order(turn: &mut Turn, flights: &mut [Flight]) -> Result<(), Stop> {
    for flight in flights {
        match std::mem::replace(&mut flight.step, Step::Returned) {
            Step::Returned => {}
            Step::Over(over) => deliver(turn, &flight.call, *over)?,
            ready @ Step::Ready(_) => {
                flight.step = ready;
                return Ok(());
            }
        }
    }
    Ok(())
}
