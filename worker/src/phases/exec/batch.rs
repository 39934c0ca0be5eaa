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

use super::flight::{Flight, Ready, Step};
use super::remedy::{FailedCall, Remedy, remedy};
use super::send::{self, Fate, Made, News};
use super::tool_outcome::{self, Ending, Over, deliver};
use super::tries::{self, NextTry};
use super::{admission, approvals, artifacts, circuit, remote_calls};
use crate::phases::resol;
use crate::policy::{self, Act, Ruling};
use crate::state::journal::{self, Call, CallResult};
use crate::state::{Bodies, Claimed, Outbox, Secured, Stop, TurnHistory, pay};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use turnstone_domain::CallId;
use turnstone_domain::agent::Capability;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::tool_call::{ToolCallState, ToolOutcome};
use turnstone_store::breakers::Passage;

/// The most calls that a round begins. All of them leave right after its barrier, so that no call waits for another
/// one while it is journalled as sent.
const AT_ONCE: usize = 8;

/// Runs calls until each has its outcome and the model has received it. Each call comes with its position in the model's
/// answer.
///
/// # Errors
/// As [`super::run`].
pub async fn run(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    requested: Vec<(usize, RequestedCall)>,
) -> Result<(), Stop> {
    let mut flights = Vec::with_capacity(requested.len());
    let mut awaited = None;
    for (position, call) in requested {
        let flight = match prepare(past, bodies, outbox, position, call).await {
            Ok(flight) => flight,
            // The other calls may have a question as well, so that all are asked at once.
            Err(stop) => {
                awaited.get_or_insert_with(Vec::new).extend(approvals::awaited(stop)?);
                continue;
            }
        };
        if matches!(flight.step, Step::Ready(_)) {
            remote_calls::check_answers(past, outbox, &flight.call).await?;
        }
        flights.push(flight);
    }
    if let Some(reviews) = awaited {
        return Err(approvals::park(reviews));
    }
    let mut reviewed = reviewed(&outbox.claimed, bodies, &flights);
    let mut outside = None;
    loop {
        begin_round(outbox, &mut flights).await?;
        admit(past, bodies, outbox, &mut flights).await?;
        deliver_in_order(past, bodies, outbox, &mut flights).await?;
        artifacts::reveal(outbox, &std::mem::take(&mut reviewed)).await?;
        if flights.iter().all(|flight| matches!(flight.step, Step::Returned)) {
            return Ok(());
        }
        outbox.secure().await?;
        send(outbox, &mut flights).await?;
        let returned = outside_if_remote(past, outbox, &flights, &mut outside).await?;
        let judged = judge(past, bodies, outbox, &mut flights, returned).await;
        if judged.is_ok() {
            deliver_in_order(past, bodies, outbox, &mut flights).await?;
            // The outcomes are durable before any step relies on them.
            outbox.barrier().await?;
        }
        let successes = flights.iter_mut().filter_map(|flight| flight.success.take()).collect();
        circuit::learn(outbox, successes).await?;
        if let Some(wait) = judged? {
            outbox.pause(wait).await?;
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

/// Returns the progress of a call, by its journal row when an earlier attempt wrote one.
///
/// - Settled: the model only has to receive the outcome.
/// - Sent, without an outcome: it is repeated if it is idempotent, or a remote agent works for it. Otherwise a reviewer is
///   asked, and may report its result; without an approval its outcome stays unknown.
/// - New, or planned: its arguments and restrictions are checked.
async fn prepare(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    position: usize,
    mut requested: RequestedCall,
) -> Result<Flight, Stop> {
    let row = past.row(&requested.call_id).cloned();
    let replaced = row.as_ref().is_some_and(|row| row.provider.is_some());
    if let Some(instead) = row.as_ref().and_then(|row| row.provider.clone()) {
        requested.name = instead;
    }
    let call = past.call(position, requested);
    let row = match row {
        // An earlier attempt settled it before the model received its outcome.
        Some(row) if row.outcome.is_some() => return Ok(Flight::over(call, Over::recalled(row))),
        row => row,
    };
    admission::watch_repetition(&outbox.claimed, past, &call)?;
    let tried = row.as_ref().map(|row| row.tried.as_slice()).unwrap_or_default();
    let tries_of_tool = tried.iter().filter(|tried| tried.instead.is_some() == replaced).count();
    let sent = row.as_ref().filter(|row| row.state == ToolCallState::Sent);
    let reported_now =
        sent.and_then(|row| policy::reported_result(past, &call, admission::unknown_sends(row)));
    if let Some(output) = reported_now {
        let output = output.clone();
        return reported(past, bodies, outbox, call, output).await;
    }
    let callable = match (admission::callable(bodies, outbox, &call), sent) {
        (Ok(callable), _) => callable,
        (Err(refusal), None) => return Ok(refused(bodies, outbox, call, refusal)),
        // The tool was removed or changed after the request was sent, and the request may have had its effect.
        (Err(_), Some(_)) => return unknown(past, outbox, call).await,
    };
    let remote_calls::KnownRemoteCall { handle, booked } = remote_calls::known(past, &call.asked);
    match sent {
        // A remote agent works for it: no second request is sent, and the turn waits for its end.
        Some(_) if handle.is_some() => {}
        // It passed its restrictions before it was sent. It must have been idempotent then, and be so now.
        Some(sent) if sent.idempotent && callable.is_idempotent() => {}
        // One approval permits one request with an unknown outcome. Requests that are known to have failed need none.
        Some(sent) => {
            let sends = admission::unknown_sends(sent);
            if let Ruling::Deny(_) = policy::may(past, outbox, Act::Resend(&call, sends)).await? {
                return unknown(past, outbox, call).await;
            }
        }
        None => {
            if let Ruling::Deny(refusal) = admission::unrestricted(past, outbox, &call, &callable).await? {
                return Ok(refused(bodies, outbox, call, refusal));
            }
        }
    }
    let tries = u32::try_from(tries_of_tool).unwrap_or(u32::MAX);
    let doubtful = sent.is_some() || tries_of_tool > 0;
    Ok(Flight::ready(call, Ready { tries, replaced, booked, handle, doubtful, ..Ready::new(callable) }))
}

/// Journals a call that is refused before it runs. The model receives the refusal in the order of its requests.
fn refused(bodies: &Bodies, outbox: &mut Outbox, mut call: Call, refusal: ToolOutcome) -> Flight {
    let own = resol::capability(&outbox.claimed, bodies, &call.asked.name)
        .map(|capability| capability.errors.clone());
    // A refused call has no other try and no other tool. A handler may still replace its outcome.
    let failed = FailedCall { tries: 0, repeatable: false, replaced: true, informs: false };
    let (outcome, handled) = match refusal.failure() {
        Some(FailureKind::ToolNotFound) => (refusal, None),
        _ => match remedy(&outbox.claimed.agent.errors, &own.unwrap_or_default(), refusal.clone(), failed) {
            Remedy::End(outcome, handled) => (outcome, handled),
            Remedy::Again(_) | Remedy::Instead(_) => (refusal, None),
        },
    };
    let over = Over::refused(outbox, &mut call, CallResult { outcome, handled, duration_ms: 0 }, false);
    Flight::over(call, over)
}

/// The outcome for the model of a call that may have had its effect and may not be repeated.
const UNKNOWN: &str =
    "the outcome of this call is unknown: it may or may not have had its effect; do not repeat it";

/// Ends a call that was sent before a crash and may not be repeated: the model learns that its outcome is
/// unknown.
async fn unknown(past: &TurnHistory, outbox: &mut Outbox, call: Call) -> Result<Flight, Stop> {
    let outcome = ToolOutcome::failed(FailureKind::Tool, UNKNOWN);
    let own = Capability::named(call.asked.name.clone());
    let over = Over::made(past, outbox, &call, &own, outcome.into()).await?;
    Ok(Flight::over(call, over))
}

/// Ends a call that was sent before a crash, with the result that its reviewer reported.
async fn reported(
    past: &TurnHistory,
    bodies: &Bodies,
    outbox: &mut Outbox,
    call: Call,
    output: serde_json::Value,
) -> Result<Flight, Stop> {
    let name = &call.asked.name;
    let own = resol::capability(&outbox.claimed, bodies, name);
    let own = own.unwrap_or_else(|| Capability::named(name.clone()));
    let outcome = outbox.screen_outcome(name, ToolOutcome::Success { output });
    let over = Over::made(past, outbox, &call, &own, outcome.into()).await?;
    Ok(Flight::over(call, over))
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
            ready.passage = circuit::pass(outbox, &ready.callable).await?;
            let Passage::Refused { until } = ready.passage else { break };
            let outcome = circuit::open(&outbox.claimed, &flight.call, until);
            let (tries, replaced) = (ready.tries, ready.replaced);
            let failed = FailedCall { tries, repeatable: false, replaced, informs: false };
            let (errors, own) = (&outbox.claimed.agent.errors, &ready.callable.capability.errors);
            match remedy(errors, own, outcome.clone(), failed) {
                Remedy::Instead(name) => {
                    abandon(outbox, &flight.call, ready);
                    replace(past, bodies, outbox, flight, Failed { outcome, duration_ms: 0, instead: name })
                        .await?;
                    // The loop then asks for the fallback, whose breaker may be open as well. The barrier stands between,
                    // because one write may change a row of the journal only once.
                    outbox.barrier().await?;
                }
                Remedy::End(outcome, handled) => {
                    abandon(outbox, &flight.call, ready);
                    let result = CallResult { outcome, handled, duration_ms: 0 };
                    let over = Over::refused(outbox, &mut flight.call, result, false);
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
        let is_first = ready.tries == 0 && ready.handle.is_none();
        journal::record_sent(outbox, &mut flight.call, ready.callable.is_idempotent(), is_first);
        let tool = &ready.callable.tool;
        remote_calls::record_sent(outbox, &flight.call.asked.call_id, tool, ready.handle.as_ref());
    }
    pay::barrier(outbox, leaving, aside).await
}

/// Runs the calls of the round. A round of remote calls alone needs no slot of this worker. It keeps the slot if too many
/// such rounds wait already, and the worker claims no more jobs than it has slots.
async fn outside_if_remote(
    past: &TurnHistory,
    outbox: &Outbox,
    flights: &[Flight],
    outside: &mut Option<OwnedSemaphorePermit>,
) -> Result<Vec<(usize, Made)>, Stop> {
    let slot = &outbox.claimed.slot;
    if outside.is_none() && flights.iter().all(Flight::is_remote) {
        *outside = outbox.claimed.deps.toolbox.room_outside();
    }
    if outside.is_some() {
        slot.release();
    }
    let returned = invoke(&outbox.claimed, past, outbox.secured()?, flights).await;
    let only_begun = returned.iter().all(|(_, made)| matches!(made.news, Some(News::Begun(_))));
    // The turn takes a slot again, unless its remote agents have only begun to work.
    tokio::select! {
        () = slot.take_again(), if !only_begun => {}
        () = std::future::ready(()), if only_begun => {}
        // A draining worker waits for no slot: the outcomes become durable without one.
        () = outbox.draining.cancelled() => {}
    }
    if slot.is_taken() {
        *outside = None;
    }
    Ok(returned)
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
        let peer = || {
            let call = &flight.call.asked.call_id;
            remote_calls::peer_request(claimed, past, call, ready.set_aside, ready.handle.as_ref())
        };
        let peer = ready.callable.tool.tokens().is_some().then(peer);
        Some(async move { (at, send::try_once(claimed, secured, &flight.call, &ready.callable, peer).await) })
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
) -> Result<Option<Duration>, Stop> {
    let (mut wait, mut stop) = (None, None);
    for (at, mut made) in returned {
        let Some(flight) = flights.get_mut(at) else { continue };
        tool_outcome::note_unread(outbox, &flight.call, &made.notes);
        let files = std::mem::take(&mut made.artifacts);
        match artifacts::admit(past, outbox, &flight.call, &mut made.outcome, files).await {
            Ok(files) => made.artifacts = files,
            Err(refused) => {
                stop.get_or_insert(refused);
            }
        }
        made.outcome = outbox.screen_outcome(&flight.call.asked.name, made.outcome);
        let Step::Ready(ready) = &mut flight.step else { continue };
        let begun = matches!(made.news, Some(News::Begun(_)));
        // A count that is less than before is no new use; one below zero is impossible.
        let used = if made.tokens < 0 { made.tokens } else { (made.tokens - ready.booked).max(0) };
        pay::settle(outbox, &flight.call.asked, (ready.set_aside, used), !begun);
        ready.booked = ready.booked.max(made.tokens);
        match made.news.take() {
            Some(News::Begun(handle)) => {
                remote_calls::begun(past, outbox, &flight.call, &ready.callable.tool, &handle);
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
        match conclude(past, bodies, outbox, flight, made).await? {
            Next::Round(pause) => wait = wait.max(Some(pause)),
            Next::Parked(parked) => {
                stop.get_or_insert(parked);
            }
            Next::Over => {}
        }
    }
    stop.map_or(Ok(wait), Err)
}

/// The step of a call after a try.
enum Next {
    /// Another try, after this delay.
    Round(Duration),
    /// The wait for a reviewer, who has to approve its fallback.
    Parked(Stop),
    /// None.
    Over,
}

/// Decides about a try that has an outcome: the call runs again, its fallback runs, or it is over.
async fn conclude(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flight: &mut Flight,
    mut made: Made,
) -> Result<Next, Stop> {
    let Step::Ready(ready) = &mut flight.step else { return Ok(Next::Over) };
    ready.doubtful |= made.fate == Fate::Unknown;
    let repeatable = may_repeat(ready, made.fate);
    if let (Fate::Unknown, false, ToolOutcome::Error { message, .. }) =
        (made.fate, repeatable, &mut made.outcome)
    {
        *message = format!("{message}; {UNKNOWN}");
    }
    let (is_open, success) = circuit::count(outbox, &ready.callable, ready.passage, &made).await?;
    flight.success = success;
    // While the breaker is open another try would be refused: all tries count as used.
    let tries = if is_open { u32::MAX - 1 } else { ready.tries };
    let failed = FailedCall { tries, repeatable, replaced: ready.replaced, informs: made.informs };
    let (errors, own) = (&outbox.claimed.agent.errors, &ready.callable.capability.errors);
    let (call_id, duration_ms) = (&flight.call.asked.call_id, made.duration_ms);
    let is_ended = ended(ready, &made);
    match remedy(errors, own, made.outcome.clone(), failed) {
        Remedy::Again(delay_ms) => {
            ready.tries += 1;
            let fallback = ready.replaced.then(|| flight.call.asked.name.clone());
            let next = NextTry::Again { retry: ready.tries, delay_ms, fallback };
            tries::record(outbox, &flight.call, &made.outcome, duration_ms, next);
            flight.call.journalled = Some(ToolCallState::Planned);
            Ok(Next::Round(Duration::from_millis(delay_ms)))
        }
        Remedy::Instead(instead) => {
            remote_calls::over(outbox, call_id, &ready.callable.tool, is_ended);
            let failed = Failed { outcome: made.outcome, duration_ms, instead };
            match replace(past, bodies, outbox, flight, failed).await {
                Ok(()) => Ok(Next::Round(Duration::ZERO)),
                Err(parked) => Ok(Next::Parked(parked)),
            }
        }
        Remedy::End(outcome, handled) => {
            remote_calls::over(outbox, call_id, &ready.callable.tool, is_ended);
            let result = CallResult { outcome, handled, duration_ms };
            let over = Over::made(past, outbox, &flight.call, &ready.callable.capability, result).await?;
            artifacts::keep(outbox, &flight.call, &over, made.artifacts);
            flight.step = Step::Over(Box::new(over));
            Ok(Next::Over)
        }
    }
}

/// Returns true if the call may be sent once more. A request without effect always may. After an error that the tool
/// reported, the tool has to be idempotent, or the manifest to have a `retry_policy` for it. After an unknown outcome, the
/// tool has to be idempotent.
fn may_repeat(ready: &Ready, fate: Fate) -> bool {
    let idempotent = ready.handle.is_some() || ready.callable.is_idempotent();
    match fate {
        Fate::Undone => true,
        Fate::Answered => idempotent || ready.callable.capability.errors.retry.is_some(),
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
        remote_calls::over(outbox, &call.asked.call_id, &ready.callable.tool, false);
    }
}

/// A failed try of a call, and the fallback that a handler names for it.
struct Failed {
    outcome: ToolOutcome,
    duration_ms: i64,
    instead: String,
}

/// Replaces the tool of a failed call by its fallback. The checks of the fallback apply: arguments, restrictions and
/// reviews.
///
/// # Errors
/// [`Stop::Park`] when a reviewer has to approve the fallback; the replacement is recorded before.
async fn replace(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flight: &mut Flight,
    Failed { outcome, duration_ms, instead }: Failed,
) -> Result<(), Stop> {
    journal::plan(outbox, &mut flight.call, false);
    let mut other = Call {
        asked: RequestedCall { name: instead.clone(), ..flight.call.asked.clone() },
        position: flight.call.position,
        journalled: Some(ToolCallState::Planned),
        stub_of: None,
    };
    let Ok(callable) = admission::callable(bodies, outbox, &other) else {
        // The fallback does not accept this call, so the model receives the failure of the requested tool.
        let own = Capability::named(flight.call.asked.name.clone());
        let result = CallResult { outcome, handled: None, duration_ms };
        let over = Over::made(past, outbox, &flight.call, &own, result).await?;
        flight.step = Step::Over(Box::new(over));
        return Ok(());
    };
    let (step, parked) = match admission::unrestricted(past, outbox, &other, &callable).await {
        Ok(Ruling::Deny(refusal)) => {
            (Step::Over(Box::new(Over::refused(outbox, &mut other, refusal, false))), Ok(()))
        }
        ruling => {
            tries::record(outbox, &flight.call, &outcome, duration_ms, NextTry::Instead(instead));
            let ready = Ready { replaced: true, in_round: true, ..Ready::new(callable) };
            (Step::Ready(Box::new(ready)), ruling.map(drop))
        }
    };
    (flight.call, flight.step) = (other, step);
    parked
}

/// Delivers outcomes to the model in the order of its requests, up to the first call that still runs.
async fn deliver_in_order(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    flights: &mut [Flight],
) -> Result<(), Stop> {
    for flight in flights {
        match std::mem::replace(&mut flight.step, Step::Returned) {
            Step::Returned => {}
            Step::Over(over) => deliver(past, bodies, outbox, &flight.call, *over).await?,
            ready @ Step::Ready(_) => {
                flight.step = ready;
                return Ok(());
            }
        }
    }
    Ok(())
}
