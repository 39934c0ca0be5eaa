//! The circuit breaker before a provider of models: one that has failed five times in a row is left alone for a minute by the
//! whole fleet (RS-26, RS-47). Jobs wait for it as `retryable`, and it costs them no retry.

use crate::model::ModelError;
use crate::turn::state::Turn;
use serde_json::json;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{EventName, JobError};
use turnstone_store::breakers::{BreakerKey, Passage};

/// Whether the provider may be asked; the error says until when not.
pub async fn pass(turn: &Turn, provider: &str) -> Result<Passage, JobError> {
    let deps = &turn.deps;
    let key = BreakerKey::model(provider);
    let passage = deps.breakers.pass(&*deps.clock, &key, &Breaker::default()).await;
    let Passage::Refused { until } = passage else { return Ok(passage) };
    let message =
        format!("provider {provider} has failed too often in a row and is not asked before {until}");
    let wait_ms = u64::try_from(until.since(deps.clock.now())).unwrap_or(0);
    Err(JobError::new(FailureKind::CircuitOpen, message)
        .with("provider", provider)
        .retry_after(Some(wait_ms)))
}

/// Notes that the provider answered.
pub async fn succeeded(turn: &Turn, provider: &str, passage: Passage) {
    let deps = &turn.deps;
    let probe = passage == Passage::Probe;
    deps.breakers.succeeded(&*deps.clock, &BreakerKey::model(provider), &Breaker::default(), probe).await;
}

/// Notes that the provider could not be reached or did not answer. What it refuses says nothing against it.
pub async fn failed(turn: &mut Turn, provider: &str, error: &ModelError) {
    if !matches!(error, ModelError::Unavailable(_) | ModelError::Timeout(_)) {
        return;
    }
    let deps = &turn.deps;
    let key = BreakerKey::model(provider);
    if let Some(until) = deps.breakers.failed(&*deps.clock, &key, &Breaker::default()).await {
        turn.event(EventName::BreakerOpened, json!({"provider": provider, "until": until.to_rfc3339()}));
    }
}
