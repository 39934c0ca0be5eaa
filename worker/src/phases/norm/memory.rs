//! The agent's memory of its user across engagements (OAS-50, OAS-51).
//!
//! Memory is between a user and an agent. An engagement that another agent began neither reads nor writes it.
//! Its input comes from a model, and a reviewer has to judge by its own input. An engagement without a known
//! user has none either.

use crate::state::{Outbox, Stop, TurnHistory};
use std::collections::BTreeSet;
use turnstone_domain::event::{EventBody, Recalled};
use turnstone_domain::memory;

/// Recalls messages of earlier engagements, when this one begins. From then on they are among its messages:
/// no other engagement is read again, neither after a crash nor for a fork.
///
/// # Errors
/// [`Stop::Store`].
pub async fn recall(past: &mut TurnHistory, outbox: &mut Outbox) -> Result<(), Stop> {
    // A fork begins with the memory of its origin, which is on record.
    let is_fork = past.fork.as_ref().is_some_and(|fork| !fork.recorded.is_all);
    if !outbox.claimed.has_memory() || is_fork || outbox.position.turn != 1 {
        return Ok(());
    }
    let rules = memory::rules(&outbox.claimed.agent);
    let exchanges = outbox.claimed.deps.ledger.reads().memories(&outbox.claimed.job.id, &rules).await?;
    let said = memory::recalled(exchanges, &outbox.claimed.agent.memory, outbox.budget.left());
    if said.is_empty() {
        return Ok(());
    }
    let engagements: BTreeSet<_> =
        said.iter().filter_map(|message| message.recalled_from.as_ref().map(|id| id.as_str())).collect();
    let recalled = Recalled { engagements: engagements.len(), messages: said.len() };
    outbox.event(&EventBody::MemoryRecalled(recalled));
    for message in said {
        past.say_before(outbox, message);
    }
    Ok(())
}
