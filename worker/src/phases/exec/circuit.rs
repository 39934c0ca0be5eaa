//! The circuit breakers of tools (RS-26): while many calls cannot reach a tool, the whole fleet stops calling
//! it.

use super::send::Made;
use crate::breakers::Success;
use crate::state::journal::Call;
use crate::state::{Stop, Turn};
use crate::tool::Tool;
use serde_json::json;
use std::sync::Arc;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::errors::Breaker;
use turnstone_domain::error::FailureKind;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{EventName, Timestamp};
use turnstone_store::breakers::{BreakerKey, Passage};

/// Returns the breaker of a tool. The document's rule for the tool overrides that of the configuration, which
/// overrides the document's rule for all tools.
fn breaker(turn: &Turn, tool: &Arc<dyn Tool>, capability: &Capability) -> (BreakerKey, Breaker) {
    let own = capability.errors.breaker.or_else(|| tool.breaker());
    let rule = own.unwrap_or(turn.claimed.agent.errors.breaker);
    (BreakerKey::tool(&turn.claimed.agent.name, &capability.name), rule)
}

/// Asks for permission to call a tool.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn pass(turn: &mut Turn, tool: &Arc<dyn Tool>, capability: &Capability) -> Result<Passage, Stop> {
    turn.outbox.secure().await?;
    let ((key, rule), deps) = (breaker(turn, tool, capability), &turn.claimed.deps);
    Ok(deps.breakers.pass(turn.outbox.secured()?, &*deps.clock, (&key, &rule), &turn.outbox.lease).await)
}

/// Returns the refusal of an open breaker.
pub fn open(turn: &Turn, call: &Call, until: Timestamp) -> ToolOutcome {
    let text = format!(
        "`{}` could not be reached repeatedly and is not called before {}; continue without it",
        call.asked.name,
        until.to_rfc3339()
    );
    let wait_ms = u64::try_from(until.since(turn.claimed.deps.clock.now())).unwrap_or(0);
    ToolOutcome::refused(FailureKind::CircuitOpen.code(), text).retry_after(Some(wait_ms))
}

/// Counts the outcome of a call at its breaker; returns true when a failure opened it. `successes` collects
/// what the store must learn, until the barrier.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn count(
    turn: &mut Turn,
    (tool, capability): (&Arc<dyn Tool>, &Capability),
    passage: Passage,
    made: &Made,
    successes: &mut Vec<Success>,
) -> Result<bool, Stop> {
    let (key, rule) = breaker(turn, tool, capability);
    if !made.counts && made.outcome.was_invoked() {
        successes.extend(turn.claimed.deps.breakers.succeeded(key, rule, &turn.claimed.job.id, passage));
        return Ok(false);
    }
    if !made.counts && passage != Passage::Trial {
        return Ok(false);
    }
    // Calls beside it may have been paid for.
    turn.outbox.secure().await?;
    let (deps, secured) = (&turn.claimed.deps, turn.outbox.secured()?);
    if !made.counts {
        deps.breakers.not_made(secured, &*deps.clock, (&key, &rule), &turn.claimed.job.id).await;
        return Ok(false);
    }
    let failed = deps.breakers.failed(secured, &*deps.clock, (&key, &rule), &turn.claimed.job.id).await;
    let Some(until) = failed else { return Ok(false) };
    if deps.breakers.is_new(&key) {
        tracing::warn!(breaker = key.name(), next_try = until.to_rfc3339(), "circuit breaker opened");
    }
    turn.outbox.event(
        &turn.claimed,
        EventName::BreakerOpened,
        json!({"tool": capability.name, "until": until.to_rfc3339()}),
    );
    Ok(true)
}

/// Reports successes to the store.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn learn(turn: &mut Turn, successes: Vec<Success>) -> Result<(), Stop> {
    if successes.is_empty() {
        return Ok(());
    }
    turn.outbox.secure().await?;
    for success in successes {
        turn.claimed
            .deps
            .breakers
            .store_success(turn.outbox.secured()?, &*turn.claimed.deps.clock, success)
            .await;
    }
    Ok(())
}
