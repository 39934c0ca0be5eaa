//! Calls the agent's models in order, each when its rate limit allows it, until one answers.

use super::circuit;
use super::pictures;
use super::reservation::{self, Afforded};
use super::retries::LONGEST_HOLD;
use crate::breakers::Success;
use crate::flow;
use crate::model::limits::{LimitRefusal, LimitedCall, Pass};
use crate::model::{Listener, Model, ModelAnswer, ModelError, ModelRequest, NamedModel};
use crate::turn::barrier::Secured;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use crate::turn::trace;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use turnstone_domain::agent::ModelRef;
use turnstone_domain::budget;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{EventName, JobError};

/// An answer with its provider, and the amounts to settle.
pub struct Answered {
    /// The provider that answered.
    pub provider: String,
    /// The answer.
    pub answer: ModelAnswer,
    /// The pass to settle, when a limit applies.
    pub pass: Option<Pass>,
    /// The reservation for it.
    pub afforded: Afforded,
    /// The success to report to the model's circuit breaker in the store, once the answer is durable.
    pub success: Option<Success>,
}

/// The error of a job for which there is no model to call.
const NO_MODEL: &str =
    "the job names no model and the server has no default; set ext_agent_model or [models] default_model";

/// Calls the models of the agent in order until one answers (agent extension §3 rule 2). If `heard` is set,
/// followers of the engagement receive the text while the model writes. `reserved` is the reservation of an
/// earlier call that did not answer. Afterwards the request is that of the last called model, with its number of
/// tokens and the rest of the document's timeout.
pub async fn ask(
    turn: &mut Turn,
    request: &mut ModelRequest,
    prompt_bound: i64,
    heard: bool,
    reserved: &mut Option<Afforded>,
    draining: &CancellationToken,
) -> Result<Answered, Stop> {
    let agent = Arc::clone(&turn.agent);
    let default;
    let models = if turn.agent.model.models.is_empty() {
        default = turn.deps.providers.default_model_at(turn.agent.model.provider.as_deref());
        default.as_slice()
    } else {
        agent.model.models.as_slice()
    };
    let mut last = hopeless(NO_MODEL.to_owned());
    let (tenant, wanted_tokens) = (turn.tenant(), request.max_tokens);
    for (at, wanted) in models.iter().enumerate() {
        let Some((provider, model)) = found(turn, wanted)? else {
            let unknown = unknown_provider(turn, wanted);
            // Another model of the list may answer the next time.
            last = if last.retryable { last } else { unknown };
            continue;
        };
        let passage = match circuit::pass(turn, turn.secured()?, &provider, &wanted.model).await {
            Ok(passage) => passage,
            Err(open) => {
                model_failed(turn, wanted, &provider, &open.message);
                last = open;
                continue;
            }
        };
        // Only the last model of the list waits for a provider that demands a delay.
        let patience =
            if at + 1 == models.len() { request.timeout.min(LONGEST_HOLD) } else { Duration::ZERO };
        let tokens = budget::allow(prompt_bound, wanted_tokens, turn.budget.left())
            .map_or(prompt_bound, |allowance| allowance.reserve);
        let call =
            LimitedCall { provider: &provider, model: &wanted.model, tenant: &tenant, tokens, patience };
        let (pass, place, held) =
            match Box::pin(admitted(turn, wanted, call, reserved, (prompt_bound, wanted_tokens), draining))
                .await
            {
                Ok(Ok(admitted)) => admitted,
                Ok(Err(error)) => {
                    Box::pin(circuit::not_asked(turn, turn.secured()?, &provider, &wanted.model, passage))
                        .await;
                    last = error;
                    continue;
                }
                Err(stop) => {
                    Box::pin(circuit::not_asked(turn, turn.secured()?, &provider, &wanted.model, passage))
                        .await;
                    return Err(stop);
                }
            };
        // From here on the call is part of this phase's time; waiting for durability or a rate limit before
        // it is not.
        turn.enter_phase();
        request.model.clone_from(&wanted.model);
        request.max_tokens = held.max_tokens;
        request.listener = if heard { listener(turn) } else { Listener::default() };
        let began = tokio::time::Instant::now();
        let answered = call_model(turn, turn.secured()?, (&provider, &*model), request).await;
        // Until the answer is booked, the turn waits for nothing else.
        turn.unrecorded = answered.is_ok();
        request.max_tokens = wanted_tokens;
        drop(place);
        match answered {
            Ok(answer) => {
                let success = circuit::answered(turn, &provider, &wanted.model, passage);
                return Ok(Answered { provider, answer, pass, afforded: held, success });
            }
            Err(error) => {
                Box::pin(circuit::failed(turn, &provider, &wanted.model, passage, &error)).await?;
                if let Some(pass) = &pass {
                    Box::pin(give_back(turn, turn.secured()?, pass, &error)).await;
                }
                model_failed(turn, wanted, &provider, &error.to_string());
                last = failure(wanted, &error);
                *reserved = Some(held);
                spend_time(turn, request, began);
                if !error.falls_back() || request.timeout.is_zero() {
                    return Err(last.into());
                }
            }
        }
    }
    Err(last.into())
}

/// Takes the time of a failed call from the timeout of the agent's document, which bounds all models and retries
/// together (RS-42).
fn spend_time(turn: &Turn, request: &mut ModelRequest, began: tokio::time::Instant) {
    if turn.agent.limits.model_timeout_ms.is_some() {
        request.timeout = request.timeout.saturating_sub(began.elapsed());
    }
}

/// Gets everything that a call needs: a pass of its rate limit, a place, and a reservation. `Ok(Err(_))` when
/// another model may still answer.
async fn admitted(
    turn: &mut Turn,
    wanted: &ModelRef,
    call: LimitedCall<'_>,
    reserved: &mut Option<Afforded>,
    (prompt_bound, tokens): (i64, i64),
    draining: &CancellationToken,
) -> Result<Result<(Option<Pass>, Option<OwnedSemaphorePermit>, Afforded), JobError>, Stop> {
    let provider = call.provider;
    loop {
        let pass = match enter(turn, call, draining).await? {
            Ok(pass) => pass,
            Err(held) => {
                model_failed(turn, wanted, provider, &held.message);
                return Ok(Err(held));
            }
        };
        let place = place(turn, provider, pass.as_ref(), draining).await?;
        let named = format!("{provider}/{}", wanted.model);
        let refused = match reservation::reserve(turn, reserved, (prompt_bound, tokens), named).await {
            // The job was paused before the reservation was durable, which is released with the lease.
            Ok(_) if draining.is_cancelled() => Some(Stop::Drain),
            // A freeze began while the call waited. It waits again, and holds no place of others meanwhile.
            Ok(held) if turn.is_frozen().await? => {
                *reserved = Some(held);
                None
            }
            Ok(held) => return Ok(Ok((pass, place, held))),
            Err(stop) => Some(stop),
        };
        if let Some(pass) = &pass {
            turn.deps.limits.settle(turn.secured()?, &*turn.deps.clock, pass, 0).await;
        }
        match refused {
            None => {}
            // A cheaper model may still fit.
            Some(Stop::Fail(error)) => return Ok(Err(error)),
            Some(stop) => return Err(stop),
        }
    }
}

/// Waits for a place among the provider's calls in this process. The rate limit comes first, so that a call
/// that waits for its bucket holds no place.
async fn place(
    turn: &Turn,
    provider: &str,
    pass: Option<&Pass>,
    draining: &CancellationToken,
) -> Result<Option<OwnedSemaphorePermit>, Stop> {
    let deps = &turn.deps;
    tokio::select! {
        biased;
        place = deps.providers.place(provider) => return Ok(place),
        () = draining.cancelled() => {}
    }
    if let Some(pass) = pass {
        deps.limits.settle(turn.secured()?, &*deps.clock, pass, 0).await;
    }
    Err(Stop::Drain)
}

/// Waits until the rate limits admit a call, and no freeze holds. Meanwhile it holds only the slot and the reservation of an
/// earlier model. The inner error means that the provider demands a longer delay than the call can wait.
async fn enter(
    turn: &Turn,
    call: LimitedCall<'_>,
    draining: &CancellationToken,
) -> Result<Result<Option<Pass>, JobError>, Stop> {
    turn.unless_frozen().await?;
    let (deps, secured) = (&turn.deps, turn.secured()?);
    let entered = tokio::select! {
        biased;
        entered = deps.limits.enter(secured, &*deps.clock, call) => entered,
        () = draining.cancelled() => return Err(Stop::Drain),
    };
    match entered {
        Ok(pass) => Ok(Ok(pass)),
        Err(LimitRefusal::Store(error)) => Err(error.into()),
        Err(LimitRefusal::Held(until)) => {
            let LimitedCall { provider, model, .. } = call;
            let message =
                format!("model {model}: provider {provider} asked every worker to wait until {until}");
            let wait_ms = u64::try_from(until.since(deps.clock.now())).unwrap_or(0);
            let held = JobError::new(FailureKind::RateLimited, message).retry_after(Some(wait_ms));
            Ok(Err(held.of_a_hold()))
        }
    }
}

/// Returns the listener of an answer: it sends the text to the engagement's followers, unless the agent's
/// answers are checked first.
pub fn listener(turn: &Turn) -> Listener {
    if !turn.agent.speaks_live() || turn.conversation.thread().is_some() {
        return Listener::default();
    }
    let (engagement, job) = (turn.engagement.id.clone(), turn.job.id.clone());
    let speaker = turn.deps.doorbell.live().speaker(engagement, job, turn.position.turn);
    Listener::new(move |text| speaker.say(text))
}

/// Returns the model with the name of its provider: the one of a flow's node, or else of the configuration.
///
/// # Errors
/// [`Stop::Fail`] when the worker may not call the model of the node.
fn found(turn: &mut Turn, wanted: &ModelRef) -> Result<Option<NamedModel>, Stop> {
    match flow::model(turn) {
        Some(Ok(declared)) => Ok(Some(declared)),
        Some(Err(why)) => {
            model_failed(turn, wanted, "", &why);
            Err(hopeless(why).into())
        }
        None => {
            let known = turn.deps.providers.resolve(wanted);
            Ok(known.map(|(name, model)| (name.to_owned(), model)))
        }
    }
}

async fn call_model(
    turn: &Turn,
    _: Secured<'_>,
    (provider, model): (&str, &dyn Model),
    request: &ModelRequest,
) -> Result<ModelAnswer, ModelError> {
    let (span, began) = (trace::chat(turn, provider, request), Instant::now());
    let counted = &turn.trace.counted;
    let request = pictures::for_model(request, model);
    let answered = model.answer(&request).instrument(span.clone()).await;
    counted.asked(provider, began.elapsed(), answered.as_ref().err().map(ModelError::kind));
    match &answered {
        Ok(answer) => {
            trace::answered(turn, &span, answer);
            if let Some(usage) = answer.usage {
                counted.used(provider, usage.input, usage.output);
            }
        }
        Err(error) => turnstone_telemetry::span::fail(&span, error.kind(), &error.to_string()),
    }
    answered
}

/// Returns the unused tokens of a failed call, and applies the provider's delay to all workers. A call whose
/// answer was lost may have used all of its tokens.
async fn give_back(turn: &Turn, secured: Secured<'_>, pass: &Pass, error: &ModelError) {
    let deps = &turn.deps;
    if let ModelError::RateLimited { retry_after_ms: Some(wait_ms), .. } = error {
        deps.limits.hold(secured, &*deps.clock, pass, *wait_ms).await;
    }
    if !matches!(error, ModelError::Timeout(_) | ModelError::Malformed(_)) {
        deps.limits.settle(secured, &*deps.clock, pass, 0).await;
    }
}

fn model_failed(turn: &mut Turn, wanted: &ModelRef, provider: &str, message: &str) {
    let data = json!({"model": wanted.model, "provider": provider, "message": message});
    turn.event(EventName::ModelFailed, data);
}

fn unknown_provider(turn: &mut Turn, wanted: &ModelRef) -> JobError {
    let name = wanted.provider.as_deref().unwrap_or("default");
    let message =
        format!("no provider `{name}` is configured for model {}; add [providers.{name}]", wanted.model);
    model_failed(turn, wanted, name, &message);
    hopeless(message)
}

/// Returns an error that no further attempt changes: the job or the configuration has to change.
fn hopeless(message: String) -> JobError {
    JobError { retryable: false, ..JobError::new(FailureKind::ModelUnavailable, message) }
}

/// Returns the job's error for a failed call, when no other model answers.
fn failure(wanted: &ModelRef, error: &ModelError) -> JobError {
    let message = format!("model {}: {error}", wanted.model);
    match error {
        ModelError::RateLimited { retry_after_ms, .. } => {
            JobError::new(FailureKind::RateLimited, message).retry_after(*retry_after_ms).of_an_outage()
        }
        ModelError::Unavailable(_) => JobError::new(FailureKind::ModelUnavailable, message).of_an_outage(),
        ModelError::Timeout(_) => JobError::new(FailureKind::ModelTimeout, message),
        ModelError::Malformed(_) => JobError::new(FailureKind::Model, message),
        ModelError::Refused(_) => JobError { retryable: false, ..JobError::new(FailureKind::Model, message) },
    }
}
