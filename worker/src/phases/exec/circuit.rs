//! The circuit breakers of tools (RS-26): while many calls cannot reach a tool, the whole fleet stops calling
//! it.

use super::send::Made;
use crate::breakers::Success;
use crate::state::journal::Call;
use crate::state::{Claimed, Outbox, Stop};
use crate::tool::Tool;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, OpenBreaker};
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_store::breakers::{BreakerKey, Passage};

/// Returns the breaker of a tool. The document's rule for the tool overrides that of the configuration, which
/// overrides the document's rule for all tools.
fn breaker(claimed: &Claimed, tool: &Arc<dyn Tool>, capability: &Capability) -> (BreakerKey, Breaker) {
    let own = capability.errors.breaker.or_else(|| tool.breaker());
    let rule = own.unwrap_or(claimed.agent.errors.breaker);
    (BreakerKey::tool(&claimed.agent.name, &capability.name), rule)
}

/// Asks for permission to call a tool.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn pass(
    outbox: &mut Outbox,
    tool: &Arc<dyn Tool>,
    capability: &Capability,
) -> Result<Passage, Stop> {
    outbox.secure().await?;
    let ((key, rule), deps) = (breaker(&outbox.claimed, tool, capability), &outbox.claimed.deps);
    Ok(deps.breakers.pass(outbox.secured()?, &*deps.clock, (&key, &rule), &outbox.lease).await)
}

/// Returns the refusal of an open breaker.
pub fn open(claimed: &Claimed, call: &Call, until: Timestamp) -> ToolOutcome {
    let text = format!(
        "`{}` could not be reached repeatedly and is not called before {}; continue without it",
        call.asked.name,
        until.to_rfc3339()
    );
    let wait_ms = u64::try_from(until.since(claimed.deps.clock.now())).unwrap_or(0);
    ToolOutcome::refused(FailureKind::CircuitOpen.code(), text).retry_after(Some(wait_ms))
}

/// Counts the outcome of a call at its breaker; returns true when a failure opened it. `successes` collects
/// what the store must learn, until the barrier.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn count(
    outbox: &mut Outbox,
    (tool, capability): (&Arc<dyn Tool>, &Capability),
    passage: Passage,
    made: &Made,
    successes: &mut Vec<Success>,
) -> Result<bool, Stop> {
    let (key, rule) = breaker(&outbox.claimed, tool, capability);
    if !made.counts && made.outcome.was_invoked() {
        successes.extend(outbox.claimed.deps.breakers.succeeded(key, rule, &outbox.claimed.job.id, passage));
        return Ok(false);
    }
    if !made.counts && passage != Passage::Trial {
        return Ok(false);
    }
    // Calls beside it may have been paid for.
    outbox.secure().await?;
    let (deps, secured) = (&outbox.claimed.deps, outbox.secured()?);
    if !made.counts {
        deps.breakers.not_made(secured, &*deps.clock, (&key, &rule), &outbox.claimed.job.id).await;
        return Ok(false);
    }
    let failed = deps.breakers.failed(secured, &*deps.clock, (&key, &rule), &outbox.claimed.job.id).await;
    let Some(until) = failed else { return Ok(false) };
    if deps.breakers.is_new(&key) {
        tracing::warn!(breaker = key.name(), next_try = until.to_rfc3339(), "circuit breaker opened");
    }
    let (tool, until) = (Some(capability.name.clone()), until.to_rfc3339());
    outbox.event(&EventBody::BreakerOpened(OpenBreaker { tool, provider: None, model: None, until }));
    Ok(true)
}

/// Reports successes to the store.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn learn(outbox: &mut Outbox, successes: Vec<Success>) -> Result<(), Stop> {
    if successes.is_empty() {
        return Ok(());
    }
    outbox.secure().await?;
    for success in successes {
        outbox
            .claimed
            .deps
            .breakers
            .store_success(outbox.secured()?, &*outbox.claimed.deps.clock, success)
            .await;
    }
    Ok(())
}
