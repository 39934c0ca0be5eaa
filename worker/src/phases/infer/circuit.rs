//! The circuit breaker of a model (RS-26, RS-47). While many jobs cannot reach the model, the whole fleet
//! stops calling it. Refused jobs wait as `retryable`; the store releases them as the breaker closes. A
//! refusal costs no retry.
//!
//! Each model of a provider has its own breaker, so that an unknown model name does not stop the others.

use crate::breakers::Success;
use crate::model::ModelError;
use crate::state::{Claimed, Outbox, Secured, Stop};
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, OpenBreaker};
use turnstone_domain::ids::fraction;
use turnstone_store::breakers::{BreakerKey, DETAIL, Passage};

/// The least delay of a refused job after the end of the refusal, in milliseconds, unless the closing breaker
/// releases it earlier. Three times as much is the longest.
const WAIT_MS: f64 = 30_000.0;

/// Asks for permission to call a model.
///
/// # Errors
/// [`FailureKind::CircuitOpen`], which names the breaker and a time after it.
pub async fn pass(
    outbox: &Outbox,
    secured: Secured<'_>,
    provider: &str,
    model: &str,
) -> Result<Passage, JobError> {
    let deps = &outbox.claimed.deps;
    let key = BreakerKey::model(provider, model);
    let rule = deps.providers.breaker(provider);
    let passage = deps.breakers.pass(secured, &*deps.clock, (&key, &rule), &outbox.lease).await;
    let Passage::Refused { until } = passage else { return Ok(passage) };
    let message = format!(
        "model {model} at provider {provider} fails for many jobs: the circuit breaker {} refuses calls until {}; the job runs \
         when it closes",
        key.name(),
        until.to_rfc3339()
    );
    // Many jobs wait for the same breaker. Their delays are spread.
    let spread = (WAIT_MS * (1.0 + 2.0 * fraction(&outbox.lease.token))) as u64;
    let wait_ms = u64::try_from(until.since(deps.clock.now())).unwrap_or(0).saturating_add(spread);
    Err(JobError::new(FailureKind::CircuitOpen, message)
        .with("provider", provider)
        .with(DETAIL, key.name())
        .retry_after(Some(wait_ms)))
}

/// Releases the place of a trial call that did not run.
pub async fn not_asked(
    claimed: &Claimed,
    secured: Secured<'_>,
    provider: &str,
    model: &str,
    passage: Passage,
) {
    if passage == Passage::Trial {
        let (key, rule) = (BreakerKey::model(provider, model), claimed.deps.providers.breaker(provider));
        claimed.deps.breakers.not_made(secured, &*claimed.deps.clock, (&key, &rule), &claimed.job.id).await;
    }
}

/// Counts a call that the model answered, even with an error; it waits for nothing. The result is to be
/// [reported](report) as soon as the answer is durable.
pub fn answered(claimed: &Claimed, provider: &str, model: &str, passage: Passage) -> Option<Success> {
    let (key, rule) = (BreakerKey::model(provider, model), claimed.deps.providers.breaker(provider));
    claimed.deps.breakers.succeeded(key, rule, &claimed.job.id, passage)
}

/// Counts a call that failed.
///
/// # Errors
/// As [`Outbox::secured`].
pub async fn failed(
    outbox: &mut Outbox,
    provider: &str,
    model: &str,
    passage: Passage,
    failure: &ModelError,
) -> Result<(), Stop> {
    if !matches!(failure, ModelError::Unavailable(_) | ModelError::Timeout(_)) {
        let success = answered(&outbox.claimed, provider, model, passage);
        return report(outbox, success).await;
    }
    let (key, rule) = (BreakerKey::model(provider, model), outbox.claimed.deps.providers.breaker(provider));
    let (deps, secured) = (&outbox.claimed.deps, outbox.secured()?);
    if let Some(until) =
        deps.breakers.failed(secured, &*deps.clock, (&key, &rule), &outbox.claimed.job.id).await
    {
        let until = until.to_rfc3339();
        if deps.breakers.is_new(&key) {
            tracing::warn!(breaker = key.name(), next_try = until, "circuit breaker opened");
        }
        let (provider, model) = (Some(provider.to_owned()), Some(model.to_owned()));
        outbox.event(&EventBody::BreakerOpened(OpenBreaker { tool: None, provider, model, until }));
    }
    Ok(())
}

/// Reports a success to the store, if there is one to report.
///
/// # Errors
/// As [`Outbox::secured`].
pub async fn report(outbox: &Outbox, success: Option<Success>) -> Result<(), Stop> {
    if let Some(success) = success {
        Box::pin(outbox.claimed.deps.breakers.store_success(
            outbox.secured()?,
            &*outbox.claimed.deps.clock,
            success,
        ))
        .await;
    }
    Ok(())
}
