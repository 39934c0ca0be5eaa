//! The agent's memory of its user across engagements (OAS-50, OAS-51).
//!
//! Memory is between a user and an agent. An engagement that another agent began neither reads nor writes it.
//! Its input comes from a model, and a reviewer has to judge by its own input. An engagement without a known
//! user has none either.

use crate::phases::exec;
use crate::state::{Outbox, TurnHistory};
use turnstone_domain::memory::{self, Remember};

/// Returns the request to remember the exchange with which the job completes. After a handoff another agent
/// answers, and in a workflow the input holds the results of other jobs.
pub fn remember(past: &TurnHistory, outbox: &Outbox) -> Option<Remember> {
    let handed_over =
        outbox.position.handoff_agent.is_some() || exec::took_over(&outbox.claimed, past).is_some();
    let is_users = outbox.claimed.job.parent_results.is_none();
    (outbox.claimed.has_memory() && !handed_over && is_users).then(|| Remember {
        began: outbox.position.begins.max(1),
        ended: outbox.position.turn,
        rules: memory::rules(&outbox.claimed.agent),
    })
}
