//! What the agent remembers of its user across engagements (OAS-50, OAS-51).
//!
//! Memory is between a user and an agent. An engagement that another agent began has none and leaves none: what is said there is
//! said by a model, and a reviewer has to judge by what it is shown. One without a known user has none either.

use super::state::Turn;
use super::stop::Stop;
use crate::phases::exec;
use std::collections::BTreeSet;
use turnstone_domain::EventName;
use turnstone_domain::memory::{self, Remember};

fn has_memory(turn: &Turn) -> bool {
    turn.agent.retain_memory && turn.depth == 0 && turn.engagement.user.is_known()
}

/// Recalls what was said in earlier engagements, when this one begins. From then on it stands among the messages: other
/// engagements are not read again, neither after a crash nor for a fork.
///
/// # Errors
/// [`Stop::Store`].
pub async fn recall(turn: &mut Turn) -> Result<(), Stop> {
    // A fork begins with what the other one began with, which is not more than what is on record.
    let is_fork = turn.fork.as_ref().is_some_and(|fork| !fork.recorded.is_all);
    if !has_memory(turn) || is_fork || turn.position.turn != 1 {
        return Ok(());
    }
    let rules = memory::rules(&turn.agent);
    let exchanges = turn.deps.ledger.memories(&turn.job.id, &rules).await?;
    let said = memory::recalled(exchanges, &turn.agent.memory, turn.budget.left());
    if said.is_empty() {
        return Ok(());
    }
    let engagements: BTreeSet<_> =
        said.iter().filter_map(|message| message.recalled_from.as_ref().map(|id| id.as_str())).collect();
    let told = serde_json::json!({"engagements": engagements.len(), "messages": said.len()});
    turn.event(EventName::MemoryRecalled, told);
    for message in said {
        turn.say_before(message);
    }
    Ok(())
}

/// That the exchange is to be remembered with which the job completes. After a handoff the answer is another agent's, and in a
/// workflow the input has what others returned.
pub fn remember(turn: &Turn) -> Option<Remember> {
    let handed_over = turn.position.heir.is_some() || exec::took_over(turn).is_some();
    let is_users = turn.job.parent_results.is_none();
    (has_memory(turn) && !handed_over && is_users).then(|| Remember {
        began: turn.position.begins.max(1),
        ended: turn.position.turn,
        rules: memory::rules(&turn.agent),
    })
}
