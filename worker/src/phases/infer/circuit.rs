//! The circuit breaker before a model: one that could not be reached five times in a row is left alone for a minute by the whole
//! fleet (RS-26, RS-47). Jobs wait for it as `retryable`, and it costs them no retry.
//!
//! It stands before a model of a provider and not before the provider, so that a name that no provider knows shuts out nobody
//! else.

use crate::model::ModelError;
use crate::turn::state::Turn;
use serde_json::json;
use turnstone_domain::error::FailureKind;
use turnstone_domain::{EventName, JobError};
use turnstone_store::breakers::{BreakerKey, Passage};

/// Whether the model may be asked; the error says until when not.
pub async fn pass(turn: &Turn, provider: &str, model: &str) -> Result<Passage, JobError> {
    let deps = &turn.deps;
    let key = BreakerKey::model(provider, model);
    let passage = deps.breakers.pass(&*deps.clock, &key, &deps.providers.breaker(provider)).await;
    let Passage::Refused { until } = passage else { return Ok(passage) };
    let message = format!(
        "model {model} at provider {provider} has failed too often in a row and is not asked before {}",
        until.to_rfc3339()
    );
    let wait_ms = u64::try_from(until.since(deps.clock.now())).unwrap_or(0);
    Err(JobError::new(FailureKind::CircuitOpen, message)
        .with("provider", provider)
        .retry_after(Some(wait_ms)))
}

/// Gives back what was let through to find out, when the model was not asked after all.
pub async fn not_asked(turn: &Turn, provider: &str, model: &str, passage: Passage) {
    if passage == Passage::Probe {
        let key = BreakerKey::model(provider, model);
        turn.deps.breakers.not_made(&*turn.deps.clock, &key).await;
    }
}

/// Notes how it went. A model that refuses is there.
pub async fn asked(
    turn: &mut Turn,
    provider: &str,
    model: &str,
    passage: Passage,
    failure: Option<&ModelError>,
) {
    let deps = &turn.deps;
    let (key, rule) = (BreakerKey::model(provider, model), deps.providers.breaker(provider));
    if !matches!(failure, Some(ModelError::Unavailable(_) | ModelError::Timeout(_))) {
        return deps.breakers.succeeded(&*deps.clock, &key, &rule, passage == Passage::Probe).await;
    }
    if let Some(until) = deps.breakers.failed(&*deps.clock, &key, &rule).await {
        tracing::warn!(
            provider,
            model,
            until = until.to_rfc3339(),
            "a model failed too often in a row: it is left alone for a while"
        );
        let data = json!({"provider": provider, "model": model, "until": until.to_rfc3339()});
        turn.event(EventName::BreakerOpened, data);
    }
}
