//! Who answers after a handoff: the agent that took over is the agent of the inputs that follow (OSSA §5, agents brief §2.6).

use super::state::Turn;
use super::stop::Stop;
use crate::deps::Deps;
use crate::phases::exec;
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_store::EngagementClaim;

/// Notes in the job's position who took over, so that the next input is brought before that agent.
///
/// One that an output guardrail of its own stands behind takes nothing over: the pages of the engagement know the guardrails
/// of the engagement's agent alone, and would show what has not passed (OAS-43).
pub fn name(turn: &mut Turn) {
    let Some(agent) = exec::took_over(turn) else { return };
    if agent.guardrails.output.is_some() {
        return;
    }
    turn.position.heir = Some(agent.name.clone());
    let position = turn.position.clone();
    turn.pending().position = Some(position);
}

/// The agent of a claimed job: the one that took over, as it is now and under the rules of the engagement's own. That one itself
/// when nobody did, or who did is not there any more.
///
/// # Errors
/// [`Stop::Store`].
pub async fn of(deps: &Deps, side: &EngagementClaim) -> Result<Arc<AgentDefinition>, Stop> {
    let own = Arc::clone(&side.agent);
    let Some(heir) = side.position.heir.clone() else { return Ok(own) };
    let found = deps.ledger.agents(&[heir]).await?.pop();
    Ok(found.filter(|agent| agent.guardrails.output.is_none()).map_or(own, |agent| {
        let mut agent = agent.taking_over_from(&side.agent);
        agent.identity.clone_from(&side.agent.identity);
        // Where it has no filters of its own, those of the engagement's agent hold.
        let (safety, other) = (&mut agent.safety, &side.agent.safety);
        safety.content = safety.content.take().or_else(|| other.content.clone());
        safety.personal = safety.personal.take().or_else(|| other.personal.clone());
        safety.output = safety.output.take().or_else(|| other.output.clone());
        Arc::new(agent)
    }))
}
