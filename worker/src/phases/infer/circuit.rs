//! The circuit breaker of a model (RS-26, RS-47). While many jobs cannot reach the model, the whole fleet
//! stops calling it. Refused jobs wait as `retryable`; the store releases them as the breaker closes. A
//! refusal costs no retry.
//!
//! Each model of a provider has its own breaker, so that an unknown model name does not stop the others.

use crate::breakers::{Circuit, Success};
use crate::model::ModelError;
use crate::phases::circuit::{self, Service};
use crate::state::{Claimed, Outbox, Stop};
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::ids::fraction;
use turnstone_store::breakers::{BreakerKey, DETAIL, Passage};

/// The least delay of a refused job after the end of the refusal, in milliseconds, unless the closing breaker
/// releases it earlier. Three times as much is the longest.
const WAIT_MS: f64 = 30_000.0;

/// A model of a provider, and the permission of its breaker to call it.
pub struct Admission<'m> {
    provider: &'m str,
    model: &'m str,
    breaker: Circuit,
    passage: Passage,
}

impl<'m> Admission<'m> {
    /// Asks for permission to call a model. The inner error is [`FailureKind::CircuitOpen`], which names the breaker and
    /// a time after it.
    ///
    /// # Errors
    /// As [`Outbox::secured`].
    pub async fn of(
        outbox: &Outbox,
        provider: &'m str,
        model: &'m str,
    ) -> Result<Result<Self, JobError>, Stop> {
        let deps = &outbox.claimed.deps;
        let breaker =
            Circuit { key: BreakerKey::model(provider, model), rule: deps.providers.breaker(provider) };
        let passage = circuit::pass(outbox, &breaker).await?;
        let Passage::Refused { until } = passage else {
            return Ok(Ok(Self { provider, model, breaker, passage }));
        };
        let name = breaker.key.name();
        let message = format!(
            "model {model} at provider {provider} fails for many jobs: the circuit breaker {name} refuses calls until {}; the \
             job runs when it closes",
            until.to_rfc3339()
        );
        // Many jobs wait for the same breaker. Their delays are spread.
        let spread = (WAIT_MS * (1.0 + 2.0 * fraction(&outbox.lease.token))) as u64;
        let wait_ms = u64::try_from(until.since(deps.clock.now())).unwrap_or(0).saturating_add(spread);
        Ok(Err(JobError::new(FailureKind::CircuitOpen, message)
            .with("provider", provider)
            .with(DETAIL, name)
            .retry_after(Some(wait_ms))))
    }

    /// Releases the place of a trial call that did not run.
    ///
    /// # Errors
    /// As [`Outbox::secured`].
    pub async fn not_used(self, outbox: &Outbox) -> Result<(), Stop> {
        circuit::not_made(outbox, &self.breaker, self.passage).await
    }

    /// Counts a call that the model answered, even with an error; it waits for nothing. The result is to be
    /// [reported](circuit::report) as soon as the answer is durable.
    pub fn answered(self, claimed: &Claimed) -> Option<Success> {
        claimed.deps.breakers.succeeded(self.breaker, &claimed.job.id, self.passage)
    }

    /// Counts a call that failed.
    ///
    /// # Errors
    /// As [`Outbox::secured`].
    pub async fn failed(self, outbox: &mut Outbox, failure: &ModelError) -> Result<(), Stop> {
        if !matches!(
            failure,
            ModelError::Unavailable(_)
                | ModelError::Unreached(_)
                | ModelError::Cut(_)
                | ModelError::Timeout(_)
        ) {
            let success = self.answered(&outbox.claimed);
            return circuit::report(outbox, success).await;
        }
        let service = Service::Model { provider: self.provider, model: self.model };
        circuit::failed(outbox, &self.breaker, service).await?;
        Ok(())
    }
}
