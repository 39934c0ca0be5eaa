//! The circuit breakers of models and tools, as a turn uses them (RS-26).

use crate::breakers::{Circuit, Success};
use crate::state::{Outbox, Stop};
use turnstone_domain::event::{EventBody, OpenBreaker};
use turnstone_store::breakers::Passage;

/// Asks for permission to make a call.
///
/// # Errors
/// As [`Outbox::secured`].
pub async fn pass(outbox: &Outbox, circuit: &Circuit) -> Result<Passage, Stop> {
    let deps = &outbox.claimed.deps;
    Ok(deps.breakers.pass(outbox.secured()?, &*deps.clock, circuit, &outbox.lease).await)
}

/// Returns the place of a trial call that did not run, or that reveals nothing about the service.
///
/// # Errors
/// As [`Outbox::secured`].
pub async fn not_made(outbox: &Outbox, circuit: &Circuit, passage: Passage) -> Result<(), Stop> {
    if passage == Passage::Trial {
        let deps = &outbox.claimed.deps;
        deps.breakers.not_made(outbox.secured()?, &*deps.clock, circuit, &outbox.claimed.job.id).await;
    }
    Ok(())
}

/// The service that a breaker guards, as its event names it.
pub enum Service<'a> {
    Tool(&'a str),
    Model { provider: &'a str, model: &'a str },
}

/// Counts a failed call; returns true when it opened the breaker. `service` is named in the event.
///
/// # Errors
/// As [`Outbox::secured`].
pub async fn failed(outbox: &mut Outbox, circuit: &Circuit, service: Service<'_>) -> Result<bool, Stop> {
    let deps = &outbox.claimed.deps;
    let opened = deps.breakers.failed(outbox.secured()?, &*deps.clock, circuit, &outbox.claimed.job.id).await;
    let Some(until) = opened.map(|until| until.to_rfc3339()) else { return Ok(false) };
    if deps.breakers.is_new(&circuit.key) {
        tracing::warn!(breaker = circuit.key.name(), next_try = until, "circuit breaker opened");
    }
    let (tool, provider, model) = match service {
        Service::Tool(name) => (Some(name.to_owned()), None, None),
        Service::Model { provider, model } => (None, Some(provider.to_owned()), Some(model.to_owned())),
    };
    outbox.event(&EventBody::BreakerOpened(OpenBreaker { tool, provider, model, until }));
    Ok(true)
}

/// Reports successes to the store.
///
/// # Errors
/// As [`Outbox::secured`].
pub async fn report(outbox: &Outbox, successes: impl IntoIterator<Item = Success>) -> Result<(), Stop> {
    let deps = &outbox.claimed.deps;
    for success in successes {
        Box::pin(deps.breakers.store_success(outbox.secured()?, &*deps.clock, success)).await;
    }
    Ok(())
}
