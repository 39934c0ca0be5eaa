//! The agent after a handoff: the agent that took over answers the inputs that follow (OSSA §5, agents brief
//! §2.6). The agent that an engagement began with remembers only what it answered itself.
//!
//! Memory is between a user and an agent (OAS-50, OAS-51). An engagement that another agent began neither reads nor writes
//! it: its input comes from a model, and a reviewer has to judge by its own input. An engagement without a known user has
//! none either.

use crate::deps::Deps;
use crate::phases::exec;
use crate::state::claimed::tenant_of;
use crate::state::{Outbox, Stop, TurnHistory};
use std::sync::Arc;
use turnstone_domain::memory::{self, Remember};
use turnstone_domain::{AgentDefinition, RawObject};
use turnstone_store::EngagementClaim;

/// Records in the job's position which agent took over, so that it receives the next input.
///
/// An agent with an output guardrail of its own takes nothing over. The engagement's API applies the
/// guardrails of the engagement's agent only, and would show unchecked text (OAS-43).
pub fn name(past: &TurnHistory, outbox: &mut Outbox) {
    let Some(agent) = exec::took_over(&outbox.claimed, past) else { return };
    if agent.guardrails.output.is_some() {
        return;
    }
    outbox.position.handoff_agent = Some(agent.name.clone());
    outbox.pending.position = Some(outbox.position.clone());
}

/// Returns the agent of a claimed job: the one that took over, in its current form and under the rules of the
/// engagement's agent. It is the engagement's agent if none took over, or if that one no longer exists for the tenant.
///
/// # Errors
/// [`Stop::Store`].
pub async fn of(deps: &Deps, side: &EngagementClaim, meta: &RawObject) -> Result<Arc<AgentDefinition>, Stop> {
    let own = Arc::clone(&side.agent);
    let Some(handoff_agent) = side.position.handoff_agent.clone() else { return Ok(own) };
    let tenant = tenant_of(meta);
    let found = deps.ledger.reads().agents(&[handoff_agent], Some(&tenant)).await?.pop();
    Ok(found.filter(|agent| agent.guardrails.output.is_none()).map_or(own, |agent| {
        let mut agent = agent.taking_over_from(&side.agent);
        agent.identity.clone_from(&side.agent.identity);
        // It speaks to the user now, under the filters of both.
        agent.safety.restrict_by(&side.agent.safety);
        agent.guardrails.for_restricted = side.agent.guardrails.for_restricted;
        Arc::new(agent)
    }))
}

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
