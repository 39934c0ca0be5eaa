//! The circuit breakers of tools (RS-26): while many calls cannot reach a tool, the whole fleet stops calling
//! it.

use super::send::Made;
use crate::breakers::{Circuit, Success};
use crate::phases::circuit::{self, Service};
use crate::state::journal::Call;
use crate::state::tools::Callable;
use crate::state::{Claimed, Outbox, Stop};
use turnstone_domain::Timestamp;
use turnstone_domain::error::FailureKind;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_store::breakers::{BreakerKey, Passage};

/// Returns the breaker of a tool. The document's rule for the tool overrides that of the configuration, which
/// overrides the document's rule for all tools.
fn breaker(claimed: &Claimed, Callable { tool, capability }: &Callable) -> Circuit {
    let own = capability.errors.breaker.or_else(|| tool.breaker());
    let key = BreakerKey::tool(&claimed.agent.name, &capability.name);
    Circuit { key, rule: own.unwrap_or(claimed.agent.errors.breaker) }
}

/// Asks for permission to call a tool.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn pass(outbox: &mut Outbox, callable: &Callable) -> Result<Passage, Stop> {
    outbox.secure().await?;
    circuit::pass(outbox, &breaker(&outbox.claimed, callable)).await
}

/// Returns the refusal of an open breaker.
pub fn open(claimed: &Claimed, call: &Call, until: Timestamp) -> ToolOutcome {
    let text = format!(
        "`{}` could not be reached repeatedly and is not called before {}; continue without it",
        call.asked.name,
        until.to_rfc3339()
    );
    let wait_ms = u64::try_from(until.since(claimed.deps.clock.now())).unwrap_or(0);
    ToolOutcome::refused(FailureKind::CircuitOpen, text).retry_after(Some(wait_ms))
}

/// Counts the outcome of a call at its breaker. Returns true when a failure opened it, and the success that the store
/// must learn of after the barrier.
///
/// # Errors
/// As [`Outbox::secure`].
pub async fn count(
    outbox: &mut Outbox,
    callable: &Callable,
    passage: Passage,
    made: &Made,
) -> Result<(bool, Option<Success>), Stop> {
    let breaker = breaker(&outbox.claimed, callable);
    if !made.counts && made.outcome.was_invoked() {
        let claimed = &outbox.claimed;
        return Ok((false, claimed.deps.breakers.succeeded(breaker, &claimed.job.id, passage)));
    }
    if !made.counts && passage != Passage::Trial {
        return Ok((false, None));
    }
    // Calls beside it may have been paid for.
    outbox.secure().await?;
    if !made.counts {
        circuit::not_made(outbox, &breaker, passage).await?;
        return Ok((false, None));
    }
    Ok((circuit::failed(outbox, &breaker, Service::Tool(&callable.capability.name)).await?, None))
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
    circuit::report(outbox, successes).await
}
