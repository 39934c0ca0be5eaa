//! An agent as the delegate of another one.

use super::AgentDefinition;

impl AgentDefinition {
    /// Returns this agent under the limits of the agent that calls it: the smaller delegation depth applies.
    /// A delegate of a guarded agent counts as guarded itself. A supervisor that its document does not name
    /// is the agent that calls it.
    #[must_use]
    pub fn working_for(mut self, other: &Self) -> Self {
        self.limits.max_delegation_depth =
            self.limits.max_delegation_depth.min(other.limits.max_delegation_depth);
        self.guardrails.for_guarded |= other.guardrails.hold_back();
        if let Some(contact) =
            self.errors.escalation.as_mut().filter(|one| one.supervisor && one.target.is_empty())
        {
            contact.target.clone_from(&other.name);
        }
        self
    }

    /// Returns this agent for a handoff. Its answer becomes the other agent's answer, in the form that the
    /// other one demands.
    #[must_use]
    pub fn taking_over_from(self, other: &Self) -> Self {
        let mut agent = self.working_for(other);
        if !other.output.is_free() {
            agent.output = other.output.clone();
        }
        agent
    }
}
