//! Calls the agent's models in order until one answers.
//!
//! Each call needs four permissions, in this order:
//!
//! 1. its circuit breaker lets it through (`passage`);
//! 2. no freeze holds, and the rate limit admits it (`pass`);
//! 3. the provider has a free place among the calls of this process (`place`);
//! 4. the budgets reserve the most that it can use (`afforded`), which is a barrier: all is durable before the call.
//!
//! When one of them is refused, the earlier ones are given back and the next model of the list is tried.

use super::call;
use super::circuit::Admission;
use super::overflow;
use super::request::bound;
use super::reservation::{self, Afforded};
use super::retries::LONGEST_HOLD;
use crate::breakers::Success;
use crate::flow;
use crate::flow::run::FlowRun;
use crate::model::limits::{LimitRefusal, LimitedCall, Pass};
use crate::model::{Listener, ModelAnswer, ModelError, ModelRequest, NamedModel};
use crate::options::OnContextOverflow;
use crate::phases::circuit::report;
use crate::state::{Outbox, Stop};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use turnstone_domain::JobError;
use turnstone_domain::agent::ModelRef;
use turnstone_domain::budget;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, ModelFailure};

/// A request that is ready to be sent, and what its calls share.
pub struct Prepared {
    /// The request. After a call it names the model that was called last, and its timeout is what is left of the document's.
    pub request: ModelRequest,
    /// An upper bound of the tokens of its prompt.
    pub prompt_bound: i64,
    /// True if followers of the engagement receive the text while the model writes.
    pub live: bool,
    /// The reservation of a call that got no answer; the next call replaces it.
    pub reserved: Option<Afforded>,
}

impl Prepared {
    /// Returns a request of which no model was asked yet.
    pub fn of(request: ModelRequest, live: bool) -> Self {
        Self { prompt_bound: bound(&request), request, live, reserved: None }
    }
}

/// An answer with its provider, and what has to be settled once the answer is durable.
pub struct Answered {
    /// The provider that answered.
    pub provider: String,
    /// The answer.
    pub answer: ModelAnswer,
    /// The reservation in the budgets.
    pub afforded: Afforded,
    /// The report about the call.
    pub receipt: Receipt,
}

/// The report about a call that was answered, which is due once the answer is durable.
pub struct Receipt {
    /// The pass of the rate limit, which gets the unused tokens back; `None` when no limit applies.
    pass: Option<Pass>,
    /// The success for the model's circuit breaker in the store.
    success: Option<Success>,
}

impl Receipt {
    /// Returns true if there is something to report.
    pub fn is_due(&self) -> bool {
        self.pass.is_some() || self.success.is_some()
    }

    /// Reports the call, which used so many tokens.
    ///
    /// # Errors
    /// As [`Outbox::secured`].
    pub async fn report(self, outbox: &Outbox, used: i64) -> Result<(), Stop> {
        Box::pin(release(outbox, self.pass.as_ref(), used)).await?;
        report(outbox, self.success).await
    }
}

/// Returns the unused tokens of a call to its rate limit, if it has one.
async fn release(outbox: &Outbox, pass: Option<&Pass>, used: i64) -> Result<(), Stop> {
    if let Some(pass) = pass {
        let deps = &outbox.claimed.deps;
        deps.limits.settle(outbox.secured()?, &*deps.clock, pass, used).await;
    }
    Ok(())
}

/// The error of a job for which there is no model to call.
const NO_MODEL: &str =
    "the job names no model and the server has no default; set ext_agent_model or [models] default_model";

/// Calls the models of the agent in order until one answers (agent extension §3 rule 2).
///
/// # Errors
/// [`Stop::Fail`] with the error of the last model, [`Stop::Drain`], and those of a barrier.
pub async fn ask_models(
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    prepared: &mut Prepared,
) -> Result<Answered, Stop> {
    let agent = Arc::clone(&outbox.claimed.agent);
    let default;
    let models = if agent.model.models.is_empty() {
        default = outbox.claimed.deps.providers.default_model_at(agent.model.provider.as_deref());
        default.as_slice()
    } else {
        agent.model.models.as_slice()
    };
    let mut last = unconfigured(NO_MODEL.to_owned());
    let mut too_long: Option<String> = None;
    let (tenant, wanted_tokens) = (outbox.claimed.tenant(), prepared.request.max_tokens);
    for (at, wanted) in models.iter().enumerate() {
        let Some((provider, model)) = find_model(outbox, flow, wanted)? else {
            let unknown = unknown_provider(outbox, wanted);
            // If an earlier model of the list may answer later, its error is the one that permits another attempt.
            last = if last.retryable || too_long.is_some() { last } else { unknown };
            continue;
        };
        let name = format!("{provider}/{}", wanted.model);
        if too_long.as_ref().is_some_and(|refused| !overflow::has_room(outbox, &name, refused, prepared)) {
            continue;
        }
        let admission = match Admission::of(outbox, &provider, &wanted.model).await? {
            Ok(admission) => admission,
            Err(open) => {
                model_failed(outbox, wanted, &provider, &open.message);
                last = open;
                continue;
            }
        };
        // When a provider demands a delay, the next model of the list is called at once. Only the last one waits.
        let is_last = at + 1 == models.len();
        let patience = if is_last { prepared.request.timeout.min(LONGEST_HOLD) } else { Duration::ZERO };
        let surplus = outbox.claimed.deps.surplus(&name);
        let prompt_bound = prepared.prompt_bound.saturating_add(surplus.tokens);
        let tokens = budget::allow(prompt_bound, wanted_tokens, outbox.budget.left())
            .map_or(prompt_bound, |allowance| allowance.reserve);
        let call =
            LimitedCall { provider: &provider, model: &wanted.model, tenant: &tenant, tokens, patience };
        let (pass, place, afforded) = match Box::pin(admitted(outbox, wanted, call, prepared)).await {
            Ok(Ok(admitted)) => admitted,
            refused => {
                Box::pin(admission.not_used(outbox)).await?;
                last = refused?.err().unwrap_or(last);
                continue;
            }
        };
        // The duration of INFER begins here: it contains the call, and not the waits before it.
        outbox.enter_phase();
        let request = &mut prepared.request;
        request.model.clone_from(&wanted.model);
        request.max_tokens = afforded.max_tokens;
        // A budget that allows less has to be sent.
        request.unbounded = agent.model.unbounded && afforded.max_tokens == wanted_tokens;
        request.listener = if prepared.live { listener(outbox) } else { Listener::default() };
        let began = tokio::time::Instant::now();
        let answered = Box::pin(call::make(outbox, (&provider, &*model), request)).await?;
        // From here until `Outbox::book` the answer exists only in memory, so `Outbox::secured` refuses every wait.
        outbox.unrecorded = answered.is_ok();
        request.max_tokens = wanted_tokens;
        drop(place);
        match answered {
            Ok(answer) => {
                let receipt = Receipt { pass, success: admission.answered(&outbox.claimed) };
                return Ok(Answered { provider, answer, afforded, receipt });
            }
            Err(error) => {
                Box::pin(admission.failed(outbox, &error)).await?;
                Box::pin(give_back(outbox, pass.as_ref(), &error)).await?;
                model_failed(outbox, wanted, &provider, &error.to_string());
                last = failure(wanted, &error);
                prepared.reserved = Some(afforded);
                // The timeout of the agent's document bounds all models and retries together (RS-42).
                if outbox.claimed.agent.limits.model_timeout_ms.is_some() {
                    request.timeout = request.timeout.saturating_sub(began.elapsed());
                }
                if !asks_another(outbox, &error) || request.timeout.is_zero() {
                    return Err(last.into());
                }
                too_long = matches!(error, ModelError::TooLong(_)).then_some(name).or(too_long);
            }
        }
    }
    Err(last.into())
}

/// Returns true if the next model of the list is asked after a failed call.
fn asks_another(outbox: &Outbox, error: &ModelError) -> bool {
    match error {
        ModelError::TooLong(_) => {
            outbox.claimed.deps.options.on_context_overflow == OnContextOverflow::Fallback
        }
        error => error.falls_back(),
    }
}

/// Three of the permissions of a call: the pass of its rate limit, a place, and the reservation.
type Admitted = (Option<Pass>, Option<OwnedSemaphorePermit>, Afforded);

/// Gets these permissions. The inner error is the refusal of this model; another model of the list may still answer.
async fn admitted(
    outbox: &mut Outbox,
    wanted: &ModelRef,
    call: LimitedCall<'_>,
    prepared: &mut Prepared,
) -> Result<Result<Admitted, JobError>, Stop> {
    let provider = call.provider;
    loop {
        let pass = match enter(outbox, call).await? {
            Ok(pass) => pass,
            Err(held) => {
                model_failed(outbox, wanted, provider, &held.message);
                return Ok(Err(held));
            }
        };
        let place = place(outbox, provider, pass.as_ref()).await?;
        let named = format!("{provider}/{}", wanted.model);
        let refused = match reservation::reserve(outbox, prepared, named).await {
            // The job was paused before the reservation was durable, which is released with the lease.
            Ok(_) if outbox.draining.is_cancelled() => Some(Stop::Drain),
            // A freeze began while the call waited. It waits again, and holds no place of others meanwhile.
            Ok(held) if outbox.is_frozen().await? => {
                prepared.reserved = Some(held);
                None
            }
            Ok(held) => return Ok(Ok((pass, place, held))),
            Err(stop) => Some(stop),
        };
        release(outbox, pass.as_ref(), 0).await?;
        match refused {
            None => {}
            // A cheaper model may still fit.
            Some(Stop::Fail(error)) => return Ok(Err(error)),
            Some(stop) => return Err(stop),
        }
    }
}

/// Waits for a place among the calls that this process makes to the provider at once (`concurrency`); `None` when there
/// is no such bound. The rate limit comes first, so that a call that waits for it holds no place.
async fn place(
    outbox: &Outbox,
    provider: &str,
    pass: Option<&Pass>,
) -> Result<Option<OwnedSemaphorePermit>, Stop> {
    tokio::select! {
        biased;
        place = outbox.claimed.deps.providers.place(provider) => return Ok(place),
        () = outbox.draining.cancelled() => {}
    }
    release(outbox, pass, 0).await?;
    Err(Stop::Drain)
}

/// Waits until no freeze holds and the rate limit admits the call. Meanwhile the turn keeps its slot, its lease, and the
/// reservation of an earlier model. The inner error means that the provider demanded a longer delay than the call may wait.
async fn enter(outbox: &Outbox, call: LimitedCall<'_>) -> Result<Result<Option<Pass>, JobError>, Stop> {
    outbox.unless_frozen().await?;
    let (deps, secured) = (&outbox.claimed.deps, outbox.secured()?);
    let entered = tokio::select! {
        biased;
        entered = deps.limits.enter(secured, &*deps.clock, call) => entered,
        () = outbox.draining.cancelled() => return Err(Stop::Drain),
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

/// Returns the listener that sends the text of one answer to the engagement's followers while the model writes it.
fn listener(outbox: &Outbox) -> Listener {
    let (engagement, job) = (outbox.claimed.engagement.id.clone(), outbox.claimed.job.id.clone());
    let speaker = outbox.claimed.deps.doorbell.live().speaker(engagement, job, outbox.position.turn);
    Listener::new(move |text| speaker.say(text))
}

/// Returns the model with the name of its provider: the one that a flow's node declares, or else that of the
/// configuration. `None` when no provider of this name is configured.
///
/// # Errors
/// [`Stop::Fail`] when the worker may not call the model that the node declares.
fn find_model(
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    wanted: &ModelRef,
) -> Result<Option<NamedModel>, Stop> {
    match flow::model(&outbox.claimed, flow) {
        Some(Ok(declared)) => Ok(Some(declared)),
        Some(Err(why)) => {
            model_failed(outbox, wanted, "", &why);
            Err(unconfigured(why).into())
        }
        None => {
            let known = outbox.claimed.deps.providers.resolve(wanted);
            Ok(known.map(|(name, model)| (name.to_owned(), model)))
        }
    }
}

/// Returns the tokens of a failed call to the rate limit, and applies the delay that the provider demanded to all workers.
/// A call whose answer was lost may have used its tokens, so they are not returned.
async fn give_back(outbox: &Outbox, pass: Option<&Pass>, error: &ModelError) -> Result<(), Stop> {
    let deps = &outbox.claimed.deps;
    if let (ModelError::RateLimited { retry_after_ms: Some(wait_ms), .. }, Some(pass)) = (error, pass) {
        deps.limits.hold(outbox.secured()?, &*deps.clock, pass, *wait_ms).await;
    }
    match error {
        ModelError::Timeout(_) | ModelError::Malformed(_) | ModelError::Cut(_) => Ok(()),
        _ => release(outbox, pass, 0).await,
    }
}

/// Records the event that this model did not answer; another one may.
fn model_failed(outbox: &mut Outbox, wanted: &ModelRef, provider: &str, message: &str) {
    let (model, provider) = (wanted.model.clone(), provider.to_owned());
    let failure = ModelFailure { model, provider, message: Some(message.to_owned()) };
    outbox.event(&EventBody::ModelFailed(failure));
}

fn unknown_provider(outbox: &mut Outbox, wanted: &ModelRef) -> JobError {
    let name = wanted.provider.as_deref().unwrap_or("default");
    let message =
        format!("no provider `{name}` is configured for model {}; add [providers.{name}]", wanted.model);
    model_failed(outbox, wanted, name, &message);
    unconfigured(message)
}

/// Returns an error that another attempt cannot change: the job or the configuration has to change first.
fn unconfigured(message: String) -> JobError {
    JobError::new(FailureKind::ModelUnavailable, message).for_good()
}

/// Returns the job's error for a failed call, when no other model answers.
fn failure(wanted: &ModelRef, error: &ModelError) -> JobError {
    let message = format!("model {}: {error}", wanted.model);
    match error {
        ModelError::RateLimited { retry_after_ms, .. } => {
            JobError::new(FailureKind::RateLimited, message).retry_after(*retry_after_ms).of_an_outage()
        }
        ModelError::Unavailable(_) => JobError::new(FailureKind::ModelUnavailable, message).of_an_outage(),
        ModelError::Unreached(unreached) => {
            JobError::new(FailureKind::ModelUnavailable, message).of_an_outage().of_unreached(unreached)
        }
        ModelError::Cut(_) => JobError::new(FailureKind::ModelUnavailable, message),
        ModelError::Timeout(_) => JobError::new(FailureKind::ModelTimeout, message),
        ModelError::Malformed(_) => JobError::new(FailureKind::Model, message),
        ModelError::Refused(_) => JobError::new(FailureKind::Model, message).for_good(),
        ModelError::TooLong(_) => JobError::new(FailureKind::ContextOverflow, message),
    }
}
